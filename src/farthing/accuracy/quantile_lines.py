"""Prototype: D as a random walk with a slowly changing drift."""
from __future__ import annotations
import numpy as np
from farthing.normal import ndtr
from typing import NamedTuple

WALKS = (0.0, 0.03, 0.3, 3.0, 30.0)
SMOOTH = 3
STEPS = 0.0
SHARP = 2.0   # lumps, in units of `ends`
RATHER = 0.0
TURN = 2.0
PRIOR = 1.5

class Line(NamedTuple):
    off: np.ndarray       # smoothed level at places
    variance: np.ndarray
    shared: np.ndarray    # covariance with the next place
    bend: np.ndarray      # variance in the middle, over 1/4, of the stretch to the next place
    fits: np.ndarray      # log likelihood [groups]

def walked(place, off, variance, slope, walk, rows, near):
    """place [k,g] rising float; off; variance (inf: nothing told); slope[g]>0, walk[g] rows a lump, rows[g]."""
    k, g = off.shape
    turn = TURN * slope**3 / rows
    a = np.zeros((k, 2, g)); P = np.zeros((k, 3, g)); Pp = np.zeros((k, 3, g)); ap = np.zeros((k, 2, g))
    lev, sl = np.zeros(g), slope.copy()
    p11, p12, p22 = np.full(g, 4 * rows**2), np.zeros(g), (PRIOR * slope) ** 2
    fits = np.zeros(g)
    bend = np.zeros((k, g)); Ls = np.zeros((k, g))
    begun = np.zeros(g, bool)
    for i in range(k):
        if i:
            go = begun.astype(float)
            L = place[i] - place[i - 1]
            lev = lev + go * L * sl
            L = L * go
            Ls[i] = L
            n11 = p11 + 2 * L * p12 + L * L * p22 + turn * L**3 / 3 + walk * slope * L
            n12 = p12 + L * p22 + turn * L * L / 2
            p22 = p22 + turn * L
            p11, p12 = n11, n12
            bend[i - 1] = 4 * (walk * slope * L / 4 + turn * L**3 / 192)
        ap[i], Pp[i] = (lev, sl), (p11, p12, p22)
        if True:
            seen = np.isfinite(variance[i])
            begun |= seen
            r = np.where(seen, variance[i], 1.0)
            S = p11 + r
            e = off[i] - lev
            fits += np.where(seen & near[i], -0.5 * (e * e / S + np.log(S)), 0.0)
            w = np.where(seen, 1 / S, 0.0)
            k1, k2 = p11 * w, p12 * w
            lev, sl = lev + k1 * e, sl + k2 * e
            p11, p12, p22 = p11 * (1 - k1), p12 * (1 - k1), p22 - k2 * p12
        a[i], P[i] = (lev, sl), (p11, p12, p22)
    out, var, shared = np.zeros((k, g)), np.zeros((k, g)), np.zeros((k, g))
    s = a[-1].copy(); V = P[-1].copy()
    out[-1], var[-1] = s[0], V[0]
    for i in range(k - 2, -1, -1):
        L = Ls[i + 1]
        f11, f12, f22 = P[i]
        q11, q12, q22 = Pp[i + 1]
        det = q11 * q22 - q12**2
        det = np.where(det > 0, det, np.inf)
        # P F^T : F=[[1,L],[0,1]] -> PF^T = [[f11+L f12, f12],[f12+L f22, f22]]
        m11, m12, m21, m22 = f11 + L * f12, f12, f12 + L * f22, f22
        j11 = (m11 * q22 - m12 * q12) / det; j12 = (m12 * q11 - m11 * q12) / det
        j21 = (m21 * q22 - m22 * q12) / det; j22 = (m22 * q11 - m21 * q12) / det
        d1, d2 = s[0] - ap[i + 1][0], s[1] - ap[i + 1][1]
        e11, e12, e22 = V[0] - q11, V[1] - q12, V[2] - q22
        shared[i] = j11 * V[0] + j12 * V[1]
        s = np.array([a[i][0] + j11 * d1 + j12 * d2, a[i][1] + j21 * d1 + j22 * d2])
        t11, t12 = j11 * e11 + j12 * e12, j11 * e12 + j12 * e22
        t21, t22 = j21 * e11 + j22 * e12, j21 * e12 + j22 * e22
        V = np.array([f11 + t11 * j11 + t12 * j12, f12 + t11 * j21 + t12 * j22, f22 + t21 * j21 + t22 * j22])
        out[i], var[i] = s[0], V[0]
    return Line(out, var, shared, bend, fits)

STEP = 0.4
def stepped(off, variance, near, rows):
    """log likelihood of looks if D is the same at neighbours, or jumps by anything."""
    k, g = off.shape
    level, var = np.zeros(g), np.full(g, 4 * rows**2)
    fits = np.zeros(g)
    for i in range(k):
        seen = np.isfinite(variance[i])
        v = np.where(seen, variance[i], 1.0)
        sd = np.sqrt(v + var)
        e = off[i] - level
        same = STEP * np.exp(-0.5 * (e / sd) ** 2) / sd
        jump = (1 - STEP) * np.sqrt(2 * np.pi) * ndtr(e / sd) / ((np.abs(e) + sd) * np.log(1 + rows / sd))
        fits += np.where(seen & near[i], np.log(np.maximum(same + jump, 1e-300)), 0.0)
        merge = same > jump
        w = 1 / v + 1 / var
        level = np.where(seen, np.where(merge, (off[i] / v + level / var) / w, off[i]), level)
        var = np.where(seen, np.where(merge, 1 / w, v), var)
    return fits

"""The bits: a real cipher stream, never handed out twice, and a repeatable one that only tests can reach."""

import copy
import json
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import farthing.noise
from farthing.noise import bits
from farthing.noise.bits import KeyStream, seeded, system_bits

SOURCE = Path(farthing.noise.__file__).parents[1]

FORK = """
import json, os, sys, threading
from farthing.noise import rounded_gaussian
from farthing.noise.bits import system_bits

def draw():
    return [*system_bits().words(4).tolist(), *rounded_gaussian(1e6, size=4).tolist()]

stop = threading.Event()
def keep_drawing():
    while not stop.is_set():
        rounded_gaussian(2.0**40, size=8)

busy = [threading.Thread(target=keep_drawing) for _ in range(2)]
for thread in busy:
    thread.start()
draw()
seen = []
for _ in range(20):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, json.dumps(draw()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    seen.append(json.loads(os.read(reader, 4096)))
    seen.append(draw())
stop.set()
print(json.dumps(seen))
"""

FORK_WHILE_LOCKED = """
import os, signal, threading, time
from farthing.noise import bits, certified, rounded_gaussian

rounded_gaussian(2.0**40, size=8)
held = threading.Barrier(2)
def hold():
    with bits._STREAMS, certified._BALLS:
        held.wait()
        time.sleep(0.2)

holder = threading.Thread(target=hold)
holder.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(5)
    rounded_gaussian(2.0**40, size=8)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def run_apart(script):
    """Run a script in a fresh interpreter, where forking beside threads may be noisy, and return what it prints."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)


def test_words_are_the_keystream_of_aes_256_in_counter_mode():
    """The stream is AES-256 of 0, 1, 2, ... under the key."""
    key = bytes(range(32))
    block = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305  the textbook definition of counter mode
    counters = b"".join(counter.to_bytes(16, "big") for counter in range(8))

    stream = KeyStream(key)
    got = np.concatenate([stream.words(n) for n in (1, 0, 5, 10)])

    assert np.frombuffer(block.update(counters), np.uint64).tolist() == got.tolist()


def test_two_sources_never_agree():
    """Two sources of the system, or of two seeds, share no word."""
    streams = [KeyStream(), KeyStream(), system_bits(), seeded(1), seeded(2)]
    words = np.concatenate([stream.words(10_000) for stream in streams])

    assert len(words) == len(np.unique(words))


def test_threads_share_a_source_without_sharing_words():
    """Eight threads that draw from one source see no word twice, and all of a fixed stream between them."""
    stream = seeded(3)
    with ThreadPoolExecutor(8) as pool:
        words = np.concatenate(list(pool.map(lambda _: stream.words(50), range(400))))

    assert sorted(seeded(3).words(20_000).tolist()) == sorted(words.tolist())


def test_children_of_a_fork_draw_other_noise():
    """Parent and children draw different bits and noise, and a fork amid busy threads does not hang."""
    draws = [tuple(draw) for draw in run_apart(FORK)]
    words, noise = {draw[:4] for draw in draws}, {draw[4:] for draw in draws}

    assert (len(draws), len(words), len(noise)) == (40, 40, 40)


def test_a_fork_never_inherits_a_held_lock():
    """A child forked while another thread was drawing can draw."""
    assert run_apart(FORK_WHILE_LOCKED) == 7


def test_a_source_serves_one_thread_at_a_time():
    """While one thread draws, another waits."""
    with ThreadPoolExecutor(1) as pool:
        with bits._STREAMS:
            waiting = pool.submit(seeded(4).words, 1)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.05)

        assert seeded(4).words(1) == waiting.result(timeout=60)


def test_a_fork_that_python_did_not_see_takes_a_new_key(monkeypatch):
    """A changed process id alone is enough to drop the old key."""
    stream = KeyStream()
    before = stream._encryptor
    stream.words(1)
    assert before is stream._encryptor

    monkeypatch.setattr(bits.os, "getpid", lambda: -1)
    stream.words(1)

    assert before is not stream._encryptor


@pytest.mark.parametrize("key", [None, bytes(32)])
def test_a_key_is_replaced_before_it_is_worn(monkeypatch, key):
    """No key makes more than its ration of words."""
    monkeypatch.setattr(bits, "WORDS_PER_KEY", 100)
    stream = KeyStream(key)
    used = set()
    for _ in range(7):
        stream.words(40)
        used.add(stream._encryptor)

    assert len(used) == 4


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_a_source_cannot_be_duplicated(duplicate):
    """A copy would repeat the stream, so there is none."""
    with pytest.raises(TypeError):
        duplicate(KeyStream())


def test_nothing_in_the_library_uses_a_known_key():
    """No module calls `seeded` or gives a KeyStream its key, so no public path can reach repeatable noise."""
    known = re.compile(r"\bseeded\(|import.*\bseeded\b|\bKeyStream\b")
    own = SOURCE / "noise" / "bits.py"
    users = [str(path) for path in SOURCE.rglob("*.py") if path != own and known.search(path.read_text("utf-8"))]

    assert users == []
    assert known.search("KeyStream(key)")
    assert known.search("from farthing.noise.bits import seeded")


def test_no_statistical_generator_in_the_library():
    """Noise never comes from numpy.random or random."""
    banned = re.compile(r"np\.random|numpy\.random|^import random|from random import", re.MULTILINE)
    folders = ("noise", "mechanisms", "session")
    paths = [path for folder in folders for path in (SOURCE / folder).rglob("*.py")]

    assert [str(path) for path in paths if banned.search(path.read_text("utf-8"))] == []

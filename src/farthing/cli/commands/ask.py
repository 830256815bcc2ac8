"""`farthing ask`: one question, answered at the accuracy that was named."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.ask import AskOptions
from farthing.cli.input.options.question import QuestionOptions


def ask(sql: options.Sql, *, wanted: QuestionOptions, shape: AskOptions, config: options.ConfigPath = None) -> None:
    r"""Answer a question at the accuracy you name, and pay for it.

    The same question again is free; more accurately, it costs about the
    difference. A quantile at a named price is asked from scratch.

    Count, sum, average, or rank; several at once, each at its own accuracy:
      farthing ask "SELECT COUNT(*) FROM rides WHERE fare > 20" --absolute 50
      farthing ask "SELECT COUNT(*) AS n, AVG(CLAMP(fare, 0, 200)) AS fare \
          FROM rides" --absolute n=50 --absolute fare=0.5
      farthing ask "SELECT MEDIAN(fare) FROM rides" --lower 0 --upper 200 \
          --rank 1%
    Also COUNT(x), COUNT(DISTINCT unit), SUM, VARIANCE, STDDEV, MIN, MAX and
    QUANTILE(x, 0.9). CLAMP, or --lower and --upper, say how much one value
    may weigh.

    By groups, which you list since which ones exist is private:
      farthing ask "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest" \
          --keys dest=@airports.csv:faa --relative 5% --absolute 50
      farthing ask "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n \
          FROM rides GROUP BY month" --keys month=2013-01..2013-12 \
          --absolute 50
      farthing ask "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone \
          HAVING n > 100 ORDER BY n DESC LIMIT 5" --keys private --absolute 50

    Joined with tables that farthing.toml declares:
      farthing ask "SELECT a.tz, COUNT(*) AS n FROM flights \
          JOIN airports a ON dest = a.faa GROUP BY a.tz" \
          --keys tz=airports.tz --absolute 50

    Its price alone, which is free; and GoogleSQL as pasted:
      farthing ask "EXPLAIN SELECT COUNT(*) FROM rides" --absolute 50
      farthing ask "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1) \
          COUNT(*) AS n FROM rides"
    """
    with explained(as_json=shape.as_json):
        from farthing.cli.run.ask import ask

        ask(sql, wanted, shape, config)

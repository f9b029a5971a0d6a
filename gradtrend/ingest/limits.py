"""What reading a log may cost: the budgets of all readers, in one place, each with its reason.

Where one is reached, that is said (a skipped piece of the log, or an error where nothing is left), and what was read is
judged. What a captured step may cost stands in `captures/limits.py`.
"""

from __future__ import annotations

# Names. Some 7 kB of memory each; a norm and four more for each tensor of the largest models are 20,000.
MOST_METRICS = 20_000  # of one log
LONGEST_NAME = 500  # characters: a path of modules has a hundred or two. Names are compared with patterns.

# Text.
LONGEST_LINE = 16 << 20  # bytes: a logged line is a few kB; longer ones are dumps that need not fit in memory
LONGEST_HEAD = 4 << 20  # bytes by which a format is told: a row of 100,000 metrics
# Bytes of a console line that are taken apart, half of them at its end: a dict of the norms of 2,000 layers. It takes
# some 20 µs a byte.
LONGEST_PARSED = 128 << 10
MOST_CONSOLE_LINES = 2_000_000  # of values; with four a line that is half a gigabyte, and more than any verdict needs
MOST_CONSOLE_OTHERS = 4_000_000  # values that are neither norm nor loss: timings must not fill the memory

# Compressed files: beyond so many bytes, read in a few seconds, one that has grown more than so many times is no log.
# Logs shrink to a tenth or a thirtieth, to a four-hundredth where a line is repeated for hours.
ALWAYS_EXPANDED = 16 << 20
MOST_GROWTH = 500

# Documents, parsed as a whole.
LARGEST_JSON = 256 << 20  # bytes: a million rows are 200 MB
MOST_JSON_VALUES = 15_000_000  # of some 100 bytes of memory each; a million rows of ten metrics
LARGEST_SETTINGS = 1 << 20  # bytes of a YAML or JSON file of settings, a tag, a parameter
MOST_SETTINGS = 100_000  # nodes of such a YAML file, aliases written out; a run's settings are a few hundred

# Hyperparameters of a run, of which a sweep of 10,000 runs is held in memory at once.
MOST_HYPERPARAMETERS = 500  # transformers has 130 arguments, RLlib 300; beyond are copies of them, deeper nested
LONGEST_HYPERPARAMETER = 200  # characters of a value: paths and lists of sizes; longer ones are prompts and documents
MOST_IN_A_LIST = 16  # values, such as betas, milestones, hidden sizes; longer lists are data
DEEPEST_HYPERPARAMETER = 12  # mappings within mappings: mmengine's configs have eight

# Records.
LARGEST_RECORD = 256 << 20  # bytes, of images and graphs in an event file; a larger one is passed over
LARGEST_WANDB = 1 << 30  # bytes of a run of Weights & Biases, which is read as a whole

# Databases. A row takes sqlite some 30 steps and the file 30 bytes or more, and a table may be searched for each of
# many runs. A view that counts, or pages that name one another, take steps without end.
LEAST_STEPS = 20_000_000
STEPS_A_BYTE = 50
LONGEST_VALUE = 64 << 20  # bytes: SQL in a schema can make a value of a gigabyte from nothing
SECONDS_FOR_A_WRITER = 2.0  # to finish its transaction
SECONDS_FOR_A_COPY = 10.0  # of a database that is written to all the time

# Servers.
SECONDS_SILENT = 15.0  # MLflow's own client waits 120 s, seven times: a mistyped address would cost minutes
SECONDS_AN_ANSWER = 30.0
SECONDS_IN_ALL = 300.0  # for a list of runs, or for the metrics of one
LONGEST_WAIT = 30.0  # that a busy server may ask for; with more than that nobody waits for a report
BYTES_AN_ANSWER = 128 << 20  # a history of a million points from a server that does not page it
MOST_PAGES = 1000
MOST_RUNS = 10_000  # judging more takes some minutes, which nobody means who gives the address alone

# Places.
DEEPEST_FOLDER = 24  # sweeps of sweeps nest a dozen folders; deeper trees are data sets or have no end
SECONDS_FOR_A_PIPE = 5.0  # until somebody writes to a named pipe

# Object stores and other remote places.
MOST_OBJECTS = 200_000  # below one address: two hundred answers of a server, and a minute
REQUESTS_AT_ONCE = 32  # beyond that S3 gets no faster from one machine, and begins to throttle
REQUESTS_A_WORKER = 4  # of each of some processes that fetch what they read
PIECE_BYTES = 4 << 20  # of an object asked for at a time: a line of 1.2 Mbit/s has it within a request's time
MOST_TRIES = 6  # of one request: 0.1 s, then twice as long each time, is what throttling lasts
SECONDS_TO_CONNECT = 5.0
SECONDS_A_REQUEST = 30.0
SECONDS_OF_TRIES = 60.0  # of one request, with all its tries
SECONDS_TO_LIST = 600.0  # and to read the first bytes of each object: 200,000 take some minutes
SECONDS_TO_FETCH = 1800.0  # a share of logs: gigabytes on a slow line
MOST_FETCHED = 16 << 30  # bytes on this disk at one time, for one share or the first bytes of all objects
LARGEST_BESIDE = 64 << 20  # bytes of what is no log and is fetched with one: a captured step

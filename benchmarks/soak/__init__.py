"""A real cluster under load for as long as one likes, with everything done to it that may be done: one command.

    python -m benchmarks.soak --seconds 1800

Three replicas, each in a network namespace of its own, speak TLS over a bridge. Clients put, append, compare, delete
and read keys; every some seconds they get new keys, which keeps the search over each short. Meanwhile, two strikes at
a time, one on processes and files, one on the network (`strikes.py`): SIGKILL, SIGSTOP, links cut in one direction,
damage to the files of one replica at a time, wrong settings. After each period of keys the cluster must come back by
itself and answer a read of each; at the end all keys of all periods are read once more.

Judged: the history by the project's checker and by Porcupine, the traces by `vsr audit`, the logs (no traceback), exit
codes. Exit code 0 if all of it holds, 1 if not, 4 if something could not be judged. Needs Linux, and root or user
namespaces; nothing outside the new namespaces is changed.
"""

"""Starts the server under test and ends it. COSMOLABE_BIN names the binary."""

import atexit
import os
import queue
import re
import signal
import subprocess
import threading
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("COSMOLABE_BIN", REPOSITORY / "target/release/cosmolabe"))

# The public development key that the server uses when no key file is given.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

READY = re.compile(r"^cosmolabe \S+ ready on (https?://\S+)")
READY_WITHIN_S = 20
LOUD = re.compile(r'"level":\s*"(WARN|ERROR)"|panicked at')


class Server:
    """One `cosmolabe serve` process; in memory unless it is given a data directory."""

    def __init__(self, *args, data_dir=None, port=0):
        if not BINARY.exists():
            raise RuntimeError(f"no server binary at {BINARY}; set COSMOLABE_BIN")
        where = ["--data-dir", str(data_dir)] if data_dir else ["--in-memory"]
        command = [str(BINARY), "serve", "--listen", f"127.0.0.1:{port}", *where, *args]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        atexit.register(self.kill)  # a run that ends early leaves no server behind
        self._log = []
        self._lines = queue.Queue()
        threading.Thread(target=self._follow_log, daemon=True).start()
        threading.Thread(target=self._follow_output, daemon=True).start()
        self.endpoint = self._wait_until_ready()
        self.port = int(self.endpoint.rsplit(":", 1)[1])

    def _follow_log(self):
        self._log.extend(self._process.stderr)

    def _follow_output(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _wait_until_ready(self):
        try:
            while (line := self._lines.get(timeout=READY_WITHIN_S)) is not None:
                if match := READY.match(line):
                    return match.group(1).rstrip("/")
        except queue.Empty:
            pass
        self.kill()
        raise RuntimeError("the server did not get ready:\n" + "".join(self._log))

    def complaints(self):
        """Lines of the log that a healthy run does not have."""
        return [line for line in self._log if LOUD.search(line)]

    def kill(self):
        """Ends the process at once, as a power cut would."""
        self._process.kill()
        self._process.wait()

    def terminate(self, within=10):
        """Asks the process to finish and answers its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(within)

"""serve_test.py BINARY: zeroplan serve answers as the command does, to this machine alone, and bears what is thrown at it."""
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse

BINARY = sys.argv[1]
QUESTION = "/fit.json?model=llama3.2-1b&gpus=4xA100-40GB&tp=2&pp=1&zero=1&micro-batch=1&global-batch=8"
COMMAND = "fit llama3.2-1b --gpus 4xA100-40GB --tp 2 --pp 1 --zero 1 --micro-batch 1 --global-batch 8 --json"
ALLOWED = {200, 400, 403, 404, 405, 413, 431, 503, None}  # None: closed without a reply
MOST_GROWTH = 96 * 1024  # KiB; sanitizers keep what was freed


class Server:
    def __init__(self):
        self.process = subprocess.Popen([BINARY, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True)
        self.line = self.process.stderr.readline()
        self.port = int(self.line.split(":")[3].split("/")[0]) if "http://" in self.line else 0

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def get(self, target, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers

    def send(self, data, seconds=120.0):
        """The status of what comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                answer = b""
                while part := connection.recv(65536):
                    answer += part
            except OSError:
                return None
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else None


def hostile(random_):
    """Bytes that no browser sends."""
    noise = bytes(random_.randrange(256) for _ in range(random_.randrange(1, 400)))
    letters = "".join(random_.choice("abcdefgh%&=?/#+.\\'\"<>;|`$()") for _ in range(random_.randrange(1, 200)))
    host = b"Host: localhost\r\n"
    option = random_.choice(["tp", "pp", "seq", "set", "gpus", "more", "cluster", "config", "html", "save", "a", "row"])
    value = random_.choice(["-1", "1e99", "%00", "%", "%zz", "9" * 300, "/etc/passwd", "-", "--html=/tmp/x", "..", "x.json",
                            "%F0%28%8C%28", "<script>", "nan", "a" * 3000, "%0d%0aX:1", "'", "--config%20/etc/passwd"])
    return random_.choice([
        noise,
        b"GET " + noise + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /" + letters.encode() + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /fit?" + letters.encode() + b" HTTP/1.1\r\n" + host + b"\r\n",
        f"GET /fit.json?model=llama3.2-1b&gpus=4xA100-40GB&{option}={value} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
        f"GET /sweep.json?model={value}&gpus=8xH100 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
        random_.choice([b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"BREW", b"get"]) +
        b" /fit HTTP/1.1\r\n" + host + random_.choice([b"", b"Content-Length: 9\r\n", b"Content-Length: 99999999999\r\n"]) +
        b"\r\n" + noise,
        b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * random_.randrange(1, 100_000) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X: y\r\n" * random_.randrange(1, 20_000) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: " + letters.encode() + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n",
        b"GET / HTTP/1.1\r\n" + host,  # and no more
        b"",
    ])


def main():
    failures = []

    def require(holds, what):
        if not holds:
            failures.append(what)

    server = Server()
    try:
        told = subprocess.run([BINARY, *COMMAND.split()], stdout=subprocess.PIPE, text=True).stdout
        status, body, headers = server.get(QUESTION)
        require(status == 200 and body == told, "fit.json is not what fit --json prints")
        require("default-src 'none'" in headers["Content-Security-Policy"], "a page may ask other sites")
        status, body, _ = server.get("/fit.json?model=llama3-8c&gpus=8xH100-80GB")
        require(status == 400 and "nearest is 'llama3-8b'" in json.loads(body)["error"], f"no such model: {status} {body}")
        status, body, _ = server.get("/fit?model=%3Cscript%3Ealert(1)%3C/script%3E&gpus=8xH100")
        require(status == 400 and "<script>alert" not in body and "&lt;script&gt;" in body, "a name is not shown as text")
        with tempfile.TemporaryDirectory() as folder:
            model = json.dumps({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                                "num_attention_heads": 4, "vocab_size": 256, "architectures": ["LlamaForCausalLM"]})
            for name in ("config.json", "my model", "plan"):
                pathlib.Path(folder, name).write_text(model)
            pipe = f"{folder}/pipe"
            os.mkfifo(pipe)
            for command, query in (
                    ("fit", "model=/etc/passwd"), ("fit", "model=-"), ("fit", f"model={folder}"), ("fit", f"model={folder}/my model"),
                    ("fit", f"model={folder}/config.json"), ("fit", f"model={pipe}"), ("fit", "model=llama3-8b&config=/etc/passwd"),
                    ("fit", "model=llama3-8b&html=/tmp/zeroplan-page"), ("fit", "model=llama3-8b&more=--html /tmp/zeroplan-page"),
                    ("fit", f"model=llama3-8b&cluster={pipe}"), ("fit", "model=llama3-8b&more=--cluster `/etc/hostname`"),
                    ("fit", f"more=`{folder}/config.json`"), ("fit", "model=llama3-8b&more=--config /etc/passwd"),
                    ("sweep", "model=llama3-8b&save=/tmp/zeroplan-page"), ("sweep", f"model={folder}/plan"),
                    ("sweep", "model=llama3-8b&exhaustive=on"), ("explain", f"model={folder}/config.json"),
                    ("compare", "model=llama3-8b&a=--config `/etc/passwd`&b=--tp 2"), ("compare", f"a={folder}/plan&b={folder}/plan"),
                    ("compare", f"a=`{folder}/config.json` --tp 1&b=llama3-8b --tp 2")):
                escaped = urllib.parse.quote(query, safe="=&-")
                status, body, _ = server.get(f"/{command}.json?gpus=8xH100&{escaped}")
                require(status == 400 and "root:" not in body, f"{command} {query}: {status} {body[:200]}")
        require(not pathlib.Path("/tmp/zeroplan-page").exists(), "a visitor wrote a file")
        require(server.get("/", Host="example.com")[0] == 403, "another site's page may ask")
        listening = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
                     if line.split()[1].endswith(f":{server.port:04X}") and line.split()[3] == "0A"]
        require(listening == [f"0100007F:{server.port:04X}"], f"listens on {listening}")

        before = server.memory()
        random_ = random.Random(7)
        thrown = [hostile(random_) for _ in range(200)]
        answers = [None] * len(thrown)

        def throw(first):
            for i in range(first, len(thrown), 100):
                answers[i] = server.send(thrown[i])

        threads = [threading.Thread(target=throw, args=(i,)) for i in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for data, answer in zip(thrown, answers):
            require(answer in ALLOWED, f"{answer} for {data[:80]!r}")
        require({400, 403, 404, 405, 413, 431} <= set(answers), f"only {set(answers)} were answered")
        require(server.process.poll() is None, "the server went away")

        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
        for connection in slow:
            connection.sendall(b"GET / HT")
        require(server.get(QUESTION)[0] == 200, "slow visitors keep others out")
        slow[0].settimeout(120)
        require(slow[0].recv(1) == b"", "a slow visitor is not sent away")
        after = server.memory()
        require(after < before + MOST_GROWTH, f"memory grew from {before} to {after} KiB")

        other = subprocess.run([BINARY, "serve", "--port", str(server.port)], stderr=subprocess.PIPE, text=True)
        require(other.returncode == 3 and other.stderr.count("\n") == 1, f"a port in use: {other.returncode} {other.stderr}")
        server.process.terminate()
        require(server.process.wait(120) == 0, "SIGTERM does not end it cleanly")
    finally:
        server.process.kill()
    print("\n".join(failures) or f"200 hostile requests, 40 slow ones, {before} to {after} KiB: all as it should be")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())

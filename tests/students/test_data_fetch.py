"""Downloads from a server on this machine that behaves as badly as real ones."""

import hashlib
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from course_utils.data import DownloadError, download, download_set, fetch
from course_utils.terminal.main import main

CONTENT = bytes(range(256)) * 600  # more than one block
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT. `cuts` lists after how many bytes the next connections end; `ranges` says if Range works."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cuts, self.ranges, self.starts, self.content = [], True, [], CONTENT
        self.url = f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        if "missing" in self.path:
            self.send_error(404)
            return
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        self.server.starts.append(start)
        content = self.server.content
        if start and not self.server.ranges:
            start = 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        cut = self.server.cuts.pop(0) if self.server.cuts else len(content)
        self.wfile.write(content[start : start + cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def test_a_file_is_fetched_once(server, tmp_path):
    path = tmp_path / "new" / "file.bin"
    assert download(server.url, path, SHA256) == path and path.read_bytes() == CONTENT
    assert download(server.url, str(path), SHA256.upper()) == path
    assert server.starts == [0]
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


def test_a_cut_download_continues_where_it_was(server, tmp_path):
    server.cuts = [100_000, 1_000]
    download(server.url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.starts == [0, 100_000, 101_000]


def test_a_later_call_continues_too(server, tmp_path):
    server.cuts = [70_000]
    with pytest.raises(DownloadError, match="ended after 70000 of 153600 bytes"):
        download(server.url, tmp_path / "file.bin", SHA256, attempts=1)
    assert not (tmp_path / "file.bin").exists() and (tmp_path / "file.bin.part").stat().st_size == 70_000
    download(server.url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT and server.starts == [0, 70_000]


def test_a_server_that_cannot_continue_sends_everything_again(server, tmp_path):
    server.ranges, server.cuts = False, [70_000]
    download(server.url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT and server.starts == [0, 70_000]


def test_a_part_of_another_file_is_thrown_away(server, tmp_path):
    for left in (b"other" * 100, CONTENT + b"more"):  # a wrong beginning; longer than the file
        (tmp_path / "file.bin.part").write_bytes(left)
        (tmp_path / "file.bin").unlink(missing_ok=True)
        download(server.url, tmp_path / "file.bin", SHA256)
        assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.starts == [500, 0, len(CONTENT) + 4, 0]


def test_a_part_that_is_whole_is_taken(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    download(server.url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_no_file_and_keeps_the_old_one(server, tmp_path):
    server.content = CONTENT[:-1] + b"?"
    path = tmp_path / "file.bin"
    path.write_bytes(b"mine")
    with pytest.raises(
        DownloadError, match=rf"what came has the SHA-256 .*put it at {path} \(its SHA-256 is {SHA256}\)"
    ):
        download(server.url, path, SHA256)
    assert path.read_bytes() == b"mine" and server.starts == [0]
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_a_wrong_file_in_the_place_is_replaced(server, tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    assert download(server.url, path, SHA256).read_bytes() == CONTENT


def test_no_network_and_no_such_file_say_what_to_do(server, tmp_path):
    with pytest.raises(DownloadError, match="answered 404 .* or give the loader a folder that has the data"):
        download(f"{server.url}.missing", tmp_path / "file.bin", SHA256)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file.bin"
        with pytest.raises(DownloadError, match="refused.* or give the loader a folder"):
            download(url, tmp_path / "file.bin", SHA256)


def test_only_web_addresses_are_fetched(tmp_path):
    with pytest.raises(ValueError, match="https:// or http://"):
        download("file:///etc/hostname", tmp_path / "file.bin", SHA256)


def test_a_set_is_fetched_file_by_file(server, tmp_path, monkeypatch):
    address = server.url.removesuffix("/file.bin")
    monkeypatch.setitem(fetch.SETS, "tiny", ("http://nowhere.invalid", {"a.gz": SHA256, "b.gz": SHA256}))
    folder = download_set("tiny", tmp_path, address=address)
    assert folder == tmp_path / "tiny" and sorted(p.name for p in folder.iterdir()) == ["a.gz", "b.gz"]
    with pytest.raises(ValueError, match="knows mnist, fashion-mnist, cifar10"):
        download_set("imagenet", tmp_path)


def test_course_data_fetches_a_set_from_any_address(server, tmp_path, monkeypatch, capsys):
    address = server.url.rpartition("/")[0]
    monkeypatch.setitem(fetch.SETS, "multi30k", ("http://127.0.0.1:9", {"train.en.gz": SHA256}))
    assert main(["data", "multi30k", "--folder", str(tmp_path), "--url", address]) == 0
    assert "all files are there" in capsys.readouterr().out
    assert (tmp_path / "multi30k" / "train.en.gz").read_bytes() == CONTENT
    server.content = b"another" * 9
    assert main(["data", "multi30k", "--folder", str(tmp_path / "new"), "--url", address]) == 1
    assert SHA256 in capsys.readouterr().out
    assert main(["data", "multi30k", "--folder", str(tmp_path / "new"), "--url", "nowhere"]) == 2
    assert main(["data", "gpt2", "--folder", str(tmp_path), "--url", address]) == 2
    assert "by hand" in capsys.readouterr().err


def test_the_table_of_sets_is_well_formed():
    for address, files in fetch.SETS.values():
        assert address.startswith("http") and not address.endswith("/")
        assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in files.values())

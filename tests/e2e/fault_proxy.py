"""A TCP proxy that spoils connections at random: delays, cuts, corrupts, resets or half-closes them, or leaves them alone.

usage: fault_proxy.py TARGET_PORT SEED

It says where it listens. /faults of its own second port ("faults at http://...") answers {X-Request-Id: fault}, and "none" where the
answer was over before its fault. A connection whose request has no such id passes unspoilt.
"""

import asyncio
import json
import random
import re
import socket
import struct
import sys

FAULTS = ["none", "delay", "cut", "corrupt", "reset", "half_close", "refuse_late"]
done = {}


def reset(writer):
    """An end that the other side sees as a reset."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def pump(reader, writer, spoil=None):
    try:
        while data := await reader.read(4096):
            if spoil is not None and not await spoil(data):
                return
            if spoil is None:
                writer.write(data)
                await writer.drain()
        writer.write_eof()
    except (ConnectionError, OSError):
        pass


async def serve(client, to_client, target, chance):
    try:
        server, to_server = await asyncio.open_connection("127.0.0.1", target)
        head = await client.read(65536)
    except OSError:
        return to_client.close()
    named = re.search(rb"X-Request-Id: (\S+)", head)
    fault = chance.choice(FAULTS) if named else "none"
    after = chance.randrange(1, 900)  # bytes of the answer before the fault
    if named:
        done[named[1].decode()] = "none"
    passed = 0

    def note():
        done[named[1].decode()] = fault

    async def spoil(data):
        nonlocal passed, fault
        if fault == "refuse_late":
            note()
            reset(to_client)
            return False
        room = max(after - passed, 0)
        passed += len(data)
        if fault == "none" or room >= len(data):
            to_client.write(data)
        elif fault == "delay":
            note()
            fault = "none"
            await asyncio.sleep(chance.uniform(0.05, 0.4))
            to_client.write(data)
        elif fault == "corrupt":
            note()
            fault = "none"
            spoilt = bytearray(data)
            spoilt[min(room, len(data) - 1)] ^= 0xFF
            to_client.write(bytes(spoilt))
        else:
            note()
            to_client.write(data[:room])
            await to_client.drain()
            if fault == "reset":
                reset(to_client)
            elif fault == "half_close":
                to_client.write_eof()
                await asyncio.sleep(0.2)
            return False
        await to_client.drain()
        return True

    try:
        to_server.write(head)
        upward = asyncio.ensure_future(pump(client, to_server))
        await pump(server, to_client, spoil)
        upward.cancel()
    finally:
        to_server.close()
        to_client.close()


async def tell(_, writer):
    body = json.dumps(done).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


async def main():
    target, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    proxy = await asyncio.start_server(lambda r, w: serve(r, w, target, chance), "127.0.0.1", 0, backlog=1024)
    told = await asyncio.start_server(tell, "127.0.0.1", 0)
    print(f"faults at http://127.0.0.1:{told.sockets[0].getsockname()[1]}", flush=True)
    print(f"listening on http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.gather(proxy.serve_forever(), told.serve_forever())


if __name__ == "__main__":
    asyncio.run(main())

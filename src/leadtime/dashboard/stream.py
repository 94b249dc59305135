"""A growing ledger → server-sent events: one short line whenever new ticks are on record."""

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from leadtime.dashboard.clock_text import instant
from leadtime.dashboard.story import LedgerBook

LOOK_EVERY_S = 1.0
KEEP_ALIVE_LOOKS = 15


def tick_events(book: LedgerBook) -> StreamingResponse:
    """``event: tick`` with the newest tick's instant; a comment every quarter of a minute keeps the line open."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_lines(book), media_type="text/event-stream", headers=headers)


async def _lines(book: LedgerBook) -> AsyncIterator[str]:
    sent: int | None = None
    quiet = 0
    yield "retry: 2000\n\n"
    while True:
        newest = await run_in_threadpool(book.last_tick_s)
        if newest is not None and newest != sent:
            sent, quiet = newest, 0
            yield f"event: tick\nid: {newest}\ndata: {json.dumps({'as_of': instant(newest), 'as_of_s': newest})}\n\n"
        else:
            quiet += 1
            if quiet % KEEP_ALIVE_LOOKS == 0:
                yield ": still here\n\n"
        await asyncio.sleep(LOOK_EVERY_S)

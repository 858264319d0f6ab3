"""Run a coroutine from a test."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run_coroutine(coroutine):
    """Run a coroutine in a thread of its own; Playwright leaves an event loop in the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()

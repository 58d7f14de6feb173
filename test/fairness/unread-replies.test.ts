import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { bystand } from '../support/bystander.ts';
import { startGateway } from '../support/gateway.ts';
import { residentPeak } from '../support/process-figures.ts';
import { openSocket } from '../support/raw-http.ts';
import { honest, MANY_KEYS, startOneOrigin } from './support/one-origin.ts';

const SLOW = { timeout: 180_000 };
const MIB = 1024 * 1024;
/** Replies of 2 GiB, and of 6 GiB: far more than may be kept. */
const STRANGERS = process.env['TOLLGATE_DEEP'] === '1' ? 120 : 40;
const GROWN_MIB_MAX = 512;

/** A list of models of 1 MiB. */
const LARGE_LIST = Array.from(
  { length: 512 },
  (_, n) => `
[[models]]
name = "many/model-${n}"
provider_name = "Many"
description = "${'d'.repeat(1_000)}"
context_length = 1000
pricing = { prompt = 0, completion = 0 }
params = { model = "m", api_base = "http://127.0.0.1:9/v1" }
`,
).join('');

const BATCH = JSON.stringify(Array.from({ length: 50 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'models/list' })));

test(
  'strangers who ask for lists by JSON-RPC and read nothing take little memory, whatever their rate, and others are served',
  SLOW,
  async () => {
    const origin = await startOneOrigin();
    onTestFinished(() => origin.close());
    const gateway = await startGateway({ toml: `${MANY_KEYS}${origin.toml}${LARGE_LIST}` });
    onTestFinished(() => gateway.stop());
    const { key } = await gateway.openAccount('other', 1);
    const call = honest(gateway, key);
    await call();
    await (await fetch(`${gateway.baseUrl}/api/v1/models`)).text();
    const resident = residentPeak(gateway.pid);

    const strangers = Array.from({ length: STRANGERS }, async () => {
      const socket = await openSocket(gateway.baseUrl);
      onTestFinished(() => void socket.destroy());
      socket.write(
        `POST /api/v1/rpc HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${BATCH.length}\r\n\r\n${BATCH}`,
      );
      // The beginning, and no more.
      await once(socket, 'readable');
    });
    const during = await bystand({ call });
    await Promise.all(strangers);
    const grown = residentPeak(gateway.pid) - resident;
    console.log(
      `  ${STRANGERS} batches that nobody reads: ${(grown / MIB).toFixed(0)} MiB; a call waits ${during.medianMs.toFixed(0)} ms`,
    );
    // What is kept is 64 MiB; the rest is what the collector has not got to.
    expect(grown).toBeLessThan(GROWN_MIB_MAX * MIB);
    expect(during.served / during.tried, JSON.stringify(during)).toBeGreaterThanOrEqual(0.95);
  },
);

import { expect, onTestFinished, test } from 'vitest';
import { openSocket, readAnswer, sendRaw } from '../support/raw-http.ts';
import { ask, startSpine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { spineOfFile } from '../support/of-file.ts';

// Clients that take for ever to say what they want cost a socket for a while, and nobody else anything.

const spine = spineOfFile(() => ({
  toml: '[limits]\nrequests_per_minute = 1000000\nburst = 1000000\nrequest_timeout_ms = 700\n',
}));

const head = (length: number, key = spine.key) =>
  `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;

test('a body that trickles in, and headers that do, end with 408 and a closed connection', async () => {
  const seen = spine.provider.log.length;
  const begun = performance.now();
  const trickle = async (start: string, rest: string) => {
    const socket = await openSocket(spine.origin);
    const answer = readAnswer(socket);
    // A drop may be under way when the gateway closes: an error, which `once` would reject for.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(start);
    let at = 0;
    const drip = setInterval(() => socket.writable && socket.write(rest[at++ % rest.length]!), 50);
    const { status, body: text } = await answer;
    await closed;
    clearInterval(drip);
    expect(status).toBe(408);
    expect(JSON.parse(text)).toMatchObject({ error: { code: 408 } });
  };
  await Promise.all([
    trickle(head(10_000_000), '{'),
    trickle(`${head(1_000)}{"model":`, ' '),
    trickle('POST /api/v1/chat/completions HTTP/1.1\r\nx-slow: ', 'y'),
  ]);
  expect(performance.now() - begun).toBeLessThan(atThisLoad(6_500));
  expect(spine.provider.log.length).toBe(seen);
});

test('an answer may take longer than a request', async () => {
  const response = await spine.post('/chat/completions', ask('hello !tokens:10 !token-ms:150', { stream: true }));
  expect(await response.text()).toContain('[DONE]');
});

test('without a credential it is not even listened to', async () => {
  const answer = await sendRaw(
    spine.origin,
    'POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10000000\r\n\r\n{',
  );
  expect(answer.status).toBe(401);
});

test('five hundred idle and half-said connections do not slow a good client', async () => {
  // Milliseconds of the processor, to which a busy machine does not add, and of the clock, which show waiting too.
  // Its clock for requests is long: no call is over before it was sent.
  const patient = await startSpine({ toml: '[limits]\nrequests_per_minute = 1000000\nburst = 1000000\n' });
  onTestFinished(() => patient.stop());
  const good = async () => {
    const [begun, at] = [process.cpuUsage(), performance.now()];
    for (let i = 0; i < 40; i++)
      expect((await patient.post('/chat/completions', ask('hello !tokens:1'))).status).toBe(200);
    const { user, system } = process.cpuUsage(begun);
    return { busy: (user + system) / 1_000, took: performance.now() - at };
  };
  const best = async () => {
    const [one, two] = [await good(), await good()];
    return { busy: Math.min(one.busy, two.busy), took: Math.min(one.took, two.took) };
  };
  await good();
  const before = await best();
  const sockets = await Promise.all(Array.from({ length: 500 }, () => openSocket(patient.origin)));
  for (const [index, socket] of sockets.entries()) if (index % 2) socket.write(head(100, patient.key));
  let beside = await best();
  // What others do on the machine costs a processor's time as well, by its caches.
  if (beside.busy >= before.busy * 2 + 50) beside = await best();
  for (const socket of sockets) socket.destroy();
  // The contract says twice; collecting of garbage adds its own.
  expect(beside.busy).toBeLessThan(before.busy * 2 + 50);
  expect(beside.took).toBeLessThan(atThisLoad(10 * before.took + 1_000));
});

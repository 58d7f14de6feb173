import { createSocket } from 'node:dgram';
import { expect, onTestFinished, test } from 'vitest';
import { createGuardedFetch, createPublicLookup } from '../../../../../src/gateway/network/upstream/guarded-fetch.ts';
import { watchConnectionAttempts } from './connection-attempts.ts';

const A = 1;

/** A name server (RFC 1035) with IPv4 addresses only; gives its address and the names that it was asked for. */
async function nameServer(answers: Readonly<Record<string, readonly string[]>>) {
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = [];
    let at = 12;
    for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
    const name = labels.join('.').toLowerCase();
    asked.push(name);
    const type = query.readUInt16BE(at + 1);
    const found = type === A ? (answers[name] ?? []) : [];
    const head = Buffer.from(query.subarray(0, at + 5));
    head.writeUInt16BE(name in answers ? 0x8180 : 0x8183, 2);
    head.writeUInt16BE(found.length, 6);
    head.writeUInt32BE(0, 8);
    const records = found.map((ip) =>
      Buffer.from([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4, ...ip.split('.').map(Number)]),
    );
    socket.send(Buffer.concat([head, ...records]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  onTestFinished(() => void socket.close());
  return { address: `127.0.0.1:${socket.address().port}`, asked };
}

test('names are asked of name servers, all addresses come back, and this machine’s own names are none of them', async () => {
  const server = await nameServer({ 'hook.example.com': ['93.184.215.14', '93.184.215.15'] });
  const lookup = createPublicLookup({ servers: [server.address] });
  expect(await lookup('hook.example.com')).toEqual([
    { address: '93.184.215.14', family: 4 },
    { address: '93.184.215.15', family: 4 },
  ]);
  await expect(lookup('gone.example.com')).rejects.toThrow('ENOTFOUND');
  await expect(lookup('ip6-loopback')).rejects.toThrow('ENOTFOUND');
});

test('a name that really resolves to a private address is not connected to', async () => {
  const server = await nameServer({ 'rebind.example.com': ['127.0.0.1'] });
  const attempts = watchConnectionAttempts();
  const fetch = createGuardedFetch({ allowPrivate: false, lookup: createPublicLookup({ servers: [server.address] }) });
  await expect(fetch('https://rebind.example.com:8443/', { timeoutMs: 10_000, bodyBytesMax: 0 })).rejects.toMatchObject(
    { refused: true },
  );
  expect(server.asked).toContain('rebind.example.com');
  expect(attempts).toEqual([]);
});

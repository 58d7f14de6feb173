import { expect, test } from 'vitest';
import Fastify from 'fastify';
import { onTestFinished } from 'vitest';
import { clientAddress, createTrust, networkLevels, networkOf } from '#security';

const trust = createTrust(['127.0.0.1', '10.0.0.0/8', '2001:db8::/32', 'fe80::1%eth0']);

test.each([
  ['192.0.2.1', undefined, '192.0.2.1'],
  // A stranger's word.
  ['192.0.2.1', '10.0.0.1', '192.0.2.1'],
  ['127.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['::ffff:127.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['2001:db8::1', 'spoofed, 198.51.100.7 , 10.2.3.4,10.9.9.9', '198.51.100.7'],
  ['fe80::1', '198.51.100.7', '198.51.100.7'],
  ['127.0.0.1', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ['127.0.0.1', 'unknown', 'unknown'],
  ['127.0.0.1', '198.51.100.7, unknown', 'unknown'],
  ['127.0.0.1', '', '127.0.0.1'],
  ['127.0.0.1', '198.51.100.7, 10.0.0.1:443', '198.51.100.7'],
  ['127.0.0.1', '198.51.100.7, [2001:db8::1]:443', '198.51.100.7'],
])('from %s with %j it is %s', (remote, forwarded, client) => {
  expect(clientAddress(remote, forwarded, trust)).toBe(client);
});

test('is what Fastify says of a request', async () => {
  const server = Fastify({ trustProxy: trust });
  onTestFinished(() => server.close());
  server.get('/', (request) => request.ip);
  for (const forwarded of ['198.51.100.7', '198.51.100.7, 10.0.0.1', '10.0.0.1, 10.0.0.2', '198.51.100.7, unknown'])
    for (const remoteAddress of ['127.0.0.1', '::ffff:127.0.0.1', '192.0.2.1'])
      expect(
        (await server.inject({ url: '/', remoteAddress, headers: { 'x-forwarded-for': forwarded } })).body,
        `${remoteAddress} ${forwarded}`,
      ).toBe(clientAddress(remoteAddress, forwarded, trust));
});

test.each([
  ['198.51.100.7', ['gc63364', 'gc6336407']],
  ['198.51.100.7:50123', ['gc63364', 'gc6336407']],
  ['[2001:db8:77:12fe::1]:50123', ['20010db80077', '20010db8007712', '20010db8007712fe']],
  ['::ffff:198.51.100.7', ['gc63364', 'gc6336407']],
  ['2001:db8:77:12fe::1', ['20010db80077', '20010db8007712', '20010db8007712fe']],
  ['fe80::1%eth0', ['fe8000000000', 'fe800000000000', 'fe80000000000000']],
  ['solana:5eykt4:someone', ['solana:5eykt4:someone']],
])('%s is in the networks %j', (address, levels) => {
  expect(networkLevels(address)).toEqual(levels);
  expect(networkLevels(networkOf(address))).toEqual(levels);
});

import { expect, test } from 'vitest';
import { networkLevels } from '#security';
import { Places, Shares, type JobPlace } from '#wire';

// What many accounts use at the same time, such as the lines of batches.

const taken = (places: Places, account: string, wanted: number): JobPlace[] =>
  Array.from({ length: wanted }, () => places.tryTake(account)).filter((place) => place !== null);

test('a share takes another place only while as many stay free as it holds, so others find some', () => {
  const places = new Places({ total: 16, perShare: 8 });
  expect(['a', 'b', 'c', 'd', 'e', 'f'].map((account) => taken(places, account, 20).length)).toEqual([
    8, 4, 2, 1, 1, 0,
  ]);
});

test('accounts that wait take turns, and one that stops waiting gets none', async () => {
  const places = new Places({ total: 2, perShare: 2 });
  const [first, second] = [places.tryTake('a')!, places.tryTake('b')!];
  const order: string[] = [];
  const stop = new AbortController();
  const waits = (account: string, signal?: AbortSignal) =>
    places.take(account, signal && { stop: signal }).then((place) => {
      if (place !== null) order.push(account);
      return place;
    });
  const waiting = [waits('c'), waits('c'), waits('d'), waits('e', stop.signal)];
  stop.abort();
  expect(await waiting[3]).toBeNull();
  first.release();
  (await waiting[0])!.release();
  await waiting[2];
  second.release();
  await waiting[1];
  expect(order).toEqual(['c', 'd', 'c']);
});

test('accounts of one share get together what one account gets, and take turns in it', async () => {
  const places = new Places({ total: 8, perShare: 4 });
  const share = '';
  const held = Array.from({ length: 6 }, (_, at) => places.tryTake(`poor-${at}`, { share }));
  expect(held.filter((place) => place !== null)).toHaveLength(4);
  const order: string[] = [];
  const waits = (account: string) => places.take(account, { share }).then(() => order.push(account));
  const waiting = [waits('x'), waits('x'), waits('y')];
  held[0]!.release();
  held[1]!.release();
  held[2]!.release();
  await Promise.all(waiting);
  expect(order).toEqual(['x', 'y', 'x']);
  expect(places.tryTake('rich')).not.toBeNull();
});

test('a long job gives its place to another one, and counts among the long ones', async () => {
  const places = new Places({ total: 1, perShare: 1, longMs: 1, longTotal: 1 });
  const isLong = Promise.withResolvers<void>();
  const long = places.tryTake('a', { onLong: isLong.resolve })!;
  expect(places.tryTake('b')).toBeNull();
  await isLong.promise;
  const second = places.tryTake('b')!;
  expect(second).not.toBeNull();
  second.becomeLong();
  // There is room for one long job.
  expect(places.tryTake('c')).toBeNull();
  long.release();
  expect(places.tryTake('c')).not.toBeNull();
});

test('networks of one site get together no more than 7/8, those of a /56 3/4, and an address of IPv4 has neighbours', () => {
  const fill = (shares: Shares, networks: readonly string[]) => {
    for (const network of networks) while (shares.mayTake(network)) shares.take(network);
    return shares.all;
  };
  const shares = () => new Shares(1_024, 1_024, networkLevels);
  expect(fill(shares(), ['2001:db8:77:1'])).toBe(512);
  expect(
    fill(
      shares(),
      Array.from({ length: 256 }, (_none, at) => `2001:db8:77:${at.toString(16)}`),
    ),
  ).toBe(768);
  const site = shares();
  const networks = Array.from({ length: 2_048 }, (_none, at) => `2001:db8:77:${(at * 32).toString(16)}`);
  expect(fill(site, networks)).toBe(896);
  expect(fill(site, ['2001:db8:78:1'])).toBe(896 + 64);
  for (const network of networks) site.leave(network, site.amountOf(network));
  expect([site.all, fill(site, ['2001:db8:78:2'])]).toEqual([64, 64 + 480]);

  const provider = shares();
  expect(
    fill(
      provider,
      Array.from({ length: 256 }, (_none, at) => `198.51.100.${at}`),
    ),
  ).toBe(896);
  expect(provider.mayTake('198.51.101.1')).toBe(true);
});

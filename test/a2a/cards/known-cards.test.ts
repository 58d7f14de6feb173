import { expect, test } from 'vitest';
import type { Offer } from '../../../src/server/catalog/offers.ts';
import { CardUnavailable, type CardReply } from '../../../src/a2a/cards/fetch-card.ts';
import { createKnownCards, type KnownCardsOptions } from '../../../src/a2a/cards/known-cards.ts';
import { agentOffer } from './support/card-world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const reply = (card: unknown, status = 200): CardReply => ({
  status,
  headers: {},
  body: Buffer.from(JSON.stringify(card)),
});
const missing = reply({}, 404);

/** What agents answer, and the time, are the test's. */
function world(more: Partial<KnownCardsOptions> = {}) {
  let time = 1_000_000;
  let answer: (path: string, offer: Offer) => CardReply | Promise<CardReply> = () => reply({ name: 'first' });
  const asked: string[] = [];
  const faults: unknown[] = [];
  const changes: string[] = [];
  const known = createKnownCards({
    fetch: async (offer, path) => {
      asked.push(path);
      return answer(path, offer);
    },
    now: () => time,
    networkOf: ({ service }) => service,
    random: () => 0.5,
    onError: (error) => faults.push(error),
    onChanged: (_offer, card, before) => changes.push(`${before.content.name} > ${card.content.name}`),
    ...more,
  });
  return {
    asked,
    faults,
    changes,
    later: (ms: number) => void (time += ms),
    answers: (make: typeof answer) => void (answer = make),
    nameOf: async (offer = agentOffer()) => (await known.cardOf(offer))?.content.name ?? null,
    /** What was asked for behind anyone's back has come. */
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

test('is asked for once, whoever wants it, and then known for five minutes', async () => {
  const { nameOf, asked, later } = world();
  expect(await Promise.all([nameOf(), nameOf(), nameOf()])).toEqual(['first', 'first', 'first']);
  later(4 * MINUTE);
  expect(await nameOf()).toBe('first');
  expect(asked).toHaveLength(1);
});

test('is looked for where the provider says, then at the path of each version', async () => {
  const { nameOf, asked, answers } = world();
  answers((path) => (path === '/.well-known/agent.json' ? reply({ name: 'old' }) : missing));
  expect(await nameOf(agentOffer({ cardPath: '/cards/w.json' }))).toBe('old');
  expect(asked).toEqual(['/cards/w.json', '/.well-known/agent-card.json', '/.well-known/agent.json']);
});

test('is fetched again behind the back of whoever asks, and a changed one is told of', async () => {
  const { nameOf, asked, later, answers, changes, settled } = world();
  await nameOf();
  answers(() => reply({ name: 'second' }));
  later(6 * MINUTE);
  expect(await nameOf()).toBe('first');
  await settled();
  expect(await nameOf()).toBe('second');
  expect(asked).toHaveLength(2);
  expect(changes).toEqual(['first > second']);
  later(6 * MINUTE);
  await nameOf();
  await settled();
  expect(asked).toHaveLength(3);
  expect(changes).toHaveLength(1);
});

test('stands for a day where it cannot be fetched again', async () => {
  const { nameOf, later, answers, faults, settled } = world();
  await nameOf();
  answers(() => Promise.reject(new Error('gone')));
  for (let hour = 0; hour < 24; hour++) {
    expect(await nameOf()).toBe('first');
    await settled();
    later(HOUR - 1);
  }
  expect(faults.length).toBeGreaterThan(20);
  later(MINUTE);
  expect(await nameOf()).toBeNull();
});

test('an agent without one is not asked for it all the time', async () => {
  const { nameOf, asked, later, answers, faults } = world();
  answers(() => missing);
  for (let time = 0; time < 5; time++) expect(await nameOf()).toBeNull();
  expect(asked).toHaveLength(2);
  expect(faults).toEqual([expect.any(CardUnavailable)]);
  expect(String(faults[0])).toContain('/.well-known/agent.json answers 404');
  later(MINUTE);
  answers(() => reply({ name: 'late' }));
  expect(await nameOf()).toBe('late');
});

test('a host that cannot be reached is not asked at its other paths', async () => {
  const { nameOf, asked, answers } = world();
  answers(() => Promise.reject(new Error('ECONNREFUSED')));
  expect(await nameOf()).toBeNull();
  expect(asked).toHaveLength(1);
});

test('fetches again at other moments for each, a tenth around the time', async () => {
  const at = async (random: number, ms: number) => {
    const { nameOf, asked, later, settled } = world({ random: () => random });
    await nameOf();
    later(ms);
    await nameOf();
    await settled();
    return asked.length;
  };
  expect(await at(0, 4.6 * MINUTE)).toBe(2);
  expect(await at(0.99, 4.6 * MINUTE)).toBe(1);
  expect(await at(0.99, 5.5 * MINUTE)).toBe(2);
});

test('an agent that moved is asked at its new address', async () => {
  const { nameOf, asked } = world();
  await nameOf(agentOffer({ baseUrl: 'http://127.0.0.1:9' }));
  await nameOf(agentOffer({ baseUrl: 'http://127.0.0.1:10' }));
  expect(asked).toHaveLength(2);
});

const large = (_path: string, { service }: Offer) => reply({ name: service, description: 'x'.repeat(7_000) });

test('keeps so much, and those that were asked for last', async () => {
  const { nameOf, asked, answers } = world({ bytesMax: 40_000 });
  answers(large);
  for (const service of ['a', 'b', 'a', 'c', 'a']) expect(await nameOf(agentOffer({ service }))).toBe(service);
  expect(asked).toHaveLength(3);
  expect(await nameOf(agentOffer({ service: 'b' }))).toBe('b');
  expect(asked).toHaveLength(4);
});

test('many large ones from one network displace none of another', async () => {
  const { nameOf, asked, answers } = world({
    bytesMax: 60_000,
    networkOf: ({ service }) => (service.startsWith('many') ? 'a site' : null),
  });
  answers(large);
  await nameOf(agentOffer({ service: 'one' }));
  for (let n = 0; n < 20; n++) await nameOf(agentOffer({ service: `many-${n}` }));
  expect(asked).toHaveLength(21);
  await nameOf(agentOffer({ service: 'one' }));
  expect(asked).toHaveLength(21);
});

test('a network whose agents do not answer leaves fetches to others', async () => {
  const { nameOf, answers } = world({ networkOf: ({ service }) => service.slice(0, 4) });
  const gate = Promise.withResolvers<CardReply>();
  answers(() => gate.promise);
  const silent = Array.from({ length: 100 }, (_, n) => nameOf(agentOffer({ service: `dead-${n}` })));
  answers(() => reply({ name: 'known' }));
  expect(await nameOf(agentOffer({ service: 'live' }))).toBe('known');
  gate.resolve(missing);
  await Promise.all(silent);
});

test('does not ask everybody at once', async () => {
  const { nameOf, asked, answers } = world();
  const gate = Promise.withResolvers<CardReply>();
  answers(() => gate.promise);
  const first = Array.from({ length: 64 }, (_, n) => nameOf(agentOffer({ service: `s${n}` })));
  expect(await nameOf(agentOffer({ service: 'one-more' }))).toBeNull();
  gate.resolve(reply({ name: 'n' }));
  expect(new Set(await Promise.all(first))).toEqual(new Set(['n']));
  expect(asked).toHaveLength(64);
  expect(await nameOf(agentOffer({ service: 'one-more' }))).toBe('n');
});

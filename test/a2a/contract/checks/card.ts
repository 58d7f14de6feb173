import { expect } from 'vitest';
import { expectError, expectRefused, memberNames, type Bench, type Checks } from '../bench.ts';
import type { Json } from '../shapes.ts';
import { createTalk } from '../client-calls.ts';

const PATH = '/.well-known/agent-card.json';

/** The Agent Card, and the extended one (§3.1.11, §4.4, §8; 0.3 §5, §7.10). */
export const cardChecks: Checks = {
  'CARD-01': async (bench) => {
    const reply = await cardReply(bench);
    expect(reply.status).toBe(200);
    expect(reply.contentType).toMatch(/^application\/(?:a2a\+)?json\b/u);
    expect(reply.json).toMatchObject({ name: 'Fixture' });
  },
  'CARD-02': async (bench) => {
    const card = await cardOf(bench);
    for (const name of ['name', 'description', 'version'])
      expect(card[name], name).toEqual(expect.stringMatching(/./u));
    expect(card['capabilities']).toEqual(expect.any(Object));
    for (const name of ['defaultInputModes', 'defaultOutputModes', 'skills'])
      expect(card[name], name).toEqual([expect.anything(), ...rest(card[name])]);
  },
  'CARD-03': async (bench) => {
    const { talk } = bench;
    const interfaces = (await cardOf(bench))['supportedInterfaces'] as Json[];
    const own = interfaces.find((one) => one['protocolBinding'] === talk.binding && one['protocolVersion'] === '1.0');
    expect(own, JSON.stringify(interfaces)).toBeDefined();
    const there = createTalk(
      { ...talk.place, url: String(own?.['url']).replace(/\/$/u, '') },
      talk.version,
      talk.binding,
    );
    expect(await there.send('echo by the card')).toMatchObject({ text: 'by the card' });
  },
  'CARD-04': async (bench) => {
    const { talk } = bench;
    const card = await cardOf(bench);
    expect(card).toMatchObject({
      protocolVersion: expect.stringMatching(/^0\.3(?:\.\d+)?$/u),
      preferredTransport: 'JSONRPC',
    });
    const there = createTalk(
      { ...talk.place, url: String(card['url']).replace(/\/$/u, '') },
      talk.version,
      talk.binding,
    );
    expect(await there.send('echo by the card')).toMatchObject({ text: 'by the card' });
  },
  'CARD-05': async (bench) => {
    const { headers } = await cardReply(bench);
    expect(headers.get('cache-control')).toMatch(/max-age=\d+/u);
    expect(headers.get('etag')).toMatch(/^(?:W\/)?"[^"]+"$/u);
  },
  'CARD-06': async (bench) => {
    const etag = (await cardReply(bench)).headers.get('etag');
    // Without a header of its own `fetch` adds `no-cache`, which asks for the whole card.
    const again = await bench.talk.raw('GET', PATH, null, { 'if-none-match': etag, 'cache-control': 'max-age=0' });
    expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: '' });
  },
  'CARD-07': async (bench) => {
    for (const skill of (await cardOf(bench))['skills'] as Json[]) {
      for (const name of ['id', 'name', 'description']) expect(skill[name], name).toEqual(expect.stringMatching(/./u));
      expect(skill['tags']).toEqual([expect.any(String), ...rest(skill['tags'])]);
    }
  },
  'CARD-08': async (bench) => {
    for (const one of (await cardOf(bench))['supportedInterfaces'] as Json[])
      expect(one['protocolVersion']).toMatch(/^\d+\.\d+$/u);
  },
  'CARD-09': async (bench) => {
    const names = memberNames(await cardOf(bench));
    expect(names).toContain('defaultInputModes');
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z0-9]*$/u);
  },
  'CARD-10': async (bench) => {
    const card = await cardOf(bench);
    const interfaces = [
      { url: card['url'], transport: card['preferredTransport'] },
      ...((card['additionalInterfaces'] ?? []) as Json[]),
    ];
    for (const one of interfaces)
      expect(one).toEqual({
        ...one,
        url: expect.stringMatching(/^https?:\/\//u),
        transport: expect.stringMatching(/./u),
      });
  },
  'CARD-11': async (bench) => {
    for (const scheme of Object.values(((await cardOf(bench))['securitySchemes'] ?? {}) as Json)) {
      const kinds = Object.keys(scheme as Json).filter((name) => name.endsWith('SecurityScheme'));
      expect(kinds).toHaveLength(1);
    }
  },
  'EXT-01': async (bench) => {
    const card = (await bench.talk.call('GetExtendedAgentCard', {})).result();
    expect(card['name']).toEqual(expect.stringMatching(/./u));
    expect((card['skills'] as Json[]).length).toBeGreaterThan(0);
  },
  'EXT-02': async (bench) => {
    const plain = await bench.other({ extendedCard: 'no' });
    const declared = ((await cardOf(plain))['capabilities'] as Json)['extendedAgentCard'];
    const reply = await plain.talk.call('GetExtendedAgentCard', {});
    // A gateway may have one of its own where the agent has none; then the card has to say so.
    if (declared === true) expect(reply.result()['name']).toEqual(expect.any(String));
    else expectError(reply, 'unsupportedOperation', plain);
  },
  'EXT-02-0.3': async (bench) => {
    const plain = await bench.other({ extendedCard: 'no' });
    const reply = await plain.talk.call('GetExtendedAgentCard', {});
    if ((await cardOf(plain))['supportsAuthenticatedExtendedCard'] === true)
      expect(reply.result()['name']).toEqual(expect.any(String));
    else expectRefused(reply);
  },
  'EXT-03': async (bench) => {
    const unset = await bench.other({ extendedCard: 'unset' });
    const reply = await unset.talk.call('GetExtendedAgentCard', {});
    const { version } = unset.talk;
    const card = await cardOf(unset);
    const declared =
      version === '1.0'
        ? (card['capabilities'] as Json)['extendedAgentCard'] === true
        : card['supportsAuthenticatedExtendedCard'] === true;
    if (reply.error === null) return expect(reply.result()['name']).toEqual(expect.any(String));
    expectError(reply, declared ? 'extendedCardNotConfigured' : 'unsupportedOperation', unset);
  },
};

const rest = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(1) : []);

const cardReply = ({ talk }: Bench) => talk.raw('GET', PATH, null);
const cardOf = async (bench: Bench): Promise<Json> => (await cardReply(bench)).json as Json;

import { beforeEach, expect, test, vi } from 'vitest';
import {
  agentOffer,
  type Card,
  EDDSA,
  ES256,
  RICH_CARD,
  startAgent,
  startGateway,
  verifierFor,
} from './support/card-world.ts';
import { signCard } from '../../../src/a2a/cards/sign-card.ts';

type Path = readonly (string | number)[];

const PATH = '/a2a/acme/writer/.well-known/agent-card.json';

// The SDK writes each signature that does not verify to the console.
beforeEach(() => void vi.spyOn(console, 'debug').mockImplementation(() => {}));

async function served() {
  const agent = await startAgent(RICH_CARD);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  return { gateway, card: await gateway.card(PATH, '1.0'), verify: verifierFor(gateway.url) };
}

function* leaves(value: unknown, path: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) yield path;
  else
    for (const [key, child] of Object.entries(value))
      yield* leaves(child, [...path, Array.isArray(value) ? Number(key) : key]);
}

/** The card with another value at a path; undefined takes the member away. */
function changed(card: Card, path: Path, change: (value: unknown) => unknown): Card {
  const copy = structuredClone(card);
  const parent = path
    .slice(0, -1)
    .reduce<Record<string | number, unknown>>((at, key) => at[key] as Record<string, unknown>, copy);
  const key = path.at(-1)!;
  const value = change(parent[key]);
  if (value !== undefined) parent[key] = value;
  else if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else Reflect.deleteProperty(parent, key);
  return copy;
}

const other = (value: unknown) =>
  typeof value === 'boolean' ? !value : typeof value === 'number' ? value + 1 : `${String(value)}!`;

test('a card with any value changed, or taken away, is refused', async () => {
  const { card, verify } = await served();
  await verify(card);
  const { signatures: _signatures, ...content } = card;
  const paths = [...leaves(content)];
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.some(([first]) => first === 'skills') && paths.some(([first]) => first === 'securitySchemes')).toBe(
    true,
  );
  for (const path of paths) {
    await expect(verify(changed(card, path, other)), `changed: ${path.join('.')}`).rejects.toThrow(
      'No valid signatures',
    );
    await expect(verify(changed(card, path, () => undefined)), `taken away: ${path.join('.')}`).rejects.toThrow(
      'No valid signatures',
    );
  }
});

test('a card with a skill or an interface added is refused', async () => {
  const { card, verify } = await served();
  for (const list of ['skills', 'supportedInterfaces', 'securityRequirements'])
    await expect(
      verify(changed(card, [list], (value) => [...(value as unknown[]), (value as unknown[])[0]])),
    ).rejects.toThrow('No valid signatures');
});

test('a signature of another key, or under another header, is refused', async () => {
  const { gateway, card, verify } = await served();
  const encode = (header: object) => Buffer.from(JSON.stringify(header)).toString('base64url');
  const header = JSON.parse(Buffer.from(card.signatures[0]!.protected, 'base64url').toString()) as Record<
    string,
    unknown
  >;
  const withHeader = (text: string) => changed(card, ['signatures', 0, 'protected'], () => text);
  const { alg: _alg, ...withoutAlg } = header;
  const { kid: _kid, ...withoutKid } = header;
  await verify(withHeader(encode(header)));
  for (const stripped of [
    withoutAlg,
    withoutKid,
    { ...header, alg: 'none' },
    { ...header, alg: 'EdDSA' },
    { ...header, kid: EDDSA.kid },
    { ...header, typ: 'JWT' },
  ])
    await expect(verify(withHeader(encode(stripped))), JSON.stringify(stripped)).rejects.toThrow('No valid signatures');
  await expect(verify(withHeader(''))).rejects.toThrow('No valid signatures');
  await expect(verify(changed(card, ['signatures', 0, 'signature'], other))).rejects.toThrow('No valid signatures');
  await expect(verify({ ...card, signatures: [] })).rejects.toThrow('No signatures');
  // What was signed before can be signed again.
  await verify(signCard(card, ES256, gateway.url));
  const forged = signCard(card, { ...EDDSA, kid: ES256.kid, alg: 'ES256' }, gateway.url);
  await expect(verify(forged)).rejects.toThrow('No valid signatures');
  const abroad = signCard(card, { ...ES256, jku: 'https://evil.example/jwks.json' }, gateway.url);
  await expect(verify(abroad)).rejects.toThrow('No valid signatures');
});

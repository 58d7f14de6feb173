import { dialPeer } from '../../../support/tunnel-peer.ts';
import { DOMAIN, SIGN_IN_TOML, solanaWallet } from '../../../support/wallets.ts';
import type { Row, Usual, World } from './world.ts';

/* What the gateway asks for itself, and what a provider says that dials in. */

const reload = async ({ gateway }: World) =>
  JSON.stringify(await gateway.admin('POST', '/reload', {}).catch((error: unknown) => String(error)));
const TOKEN = [
  { alg: 'RS256', kid: 'k', typ: 'at+jwt' },
  { iss: 'x', sub: 'x' },
]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .concat('AAAA')
  .join('.');
const withToken = (world: World) =>
  world.ask('/api/v1/chat/completions', { model: 'x' }, { authorization: `Bearer ${TOKEN}` });

/** Dials in, says one line, and waits for what the gateway does. */
const says = (line: (junk: string) => string) => async (world: World, junk: string) => {
  const peer = await dialPeer({ url: world.gateway.baseUrl, wallet: solanaWallet() });
  peer.say(`${line(junk)}\n`);
  // The gateway answers a registration, and ends the connection for a line that it cannot read. Lines of unknown types
  // are left alone.
  peer.say({ type: 'register', document: '{}', router: DOMAIN, signature: null });
  const said = await Promise.race([peer.closed, peer.heard()]).catch((error: unknown) => String(error));
  peer.kill();
  return JSON.stringify(said);
};

const MODELS = Array.from({ length: 5_000 }, (_, at) => `{"id":"a/model-${at}","context_length":1000}`).join();

export const BEHIND_ROWS: Readonly<Record<string, Row>> = {
  'the list of models of a provider': {
    bound: 'modelList',
    act: reload,
    answer: ({ path }, junk) =>
      path.includes('/models')
        ? { body: `{"data":[{"id":"openai/gpt-4o-mini","context_length":1000,"x":${junk}}]}` }
        : null,
  },
  'a long list of models': {
    bound: 'modelList',
    isText: true,
    act: reload,
    answer: ({ path }, junk) =>
      path.includes('/models')
        ? { body: `{"data":[{"id":"a/b","name":${junk === '0' ? '"x"' : junk}},${MODELS}]}` }
        : null,
  },
  'the metadata of an issuer': {
    bound: 'issuer',
    act: withToken,
    answer: ({ path }, junk) =>
      path.includes('.well-known') ? { body: `{"issuer":"x","jwks_uri":"x","x":${junk}}` } : null,
  },
  'a line of a provider that dials in': { bound: 'tunnelMessage', act: says((junk) => `{"type":"x","junk":${junk}}`) },
  'its registration': {
    bound: 'tunnelMessage',
    act: says((junk) => {
      const document = `{"version":1,"models":[{"name":"a/b","junk":${junk}}]}`;
      return JSON.stringify({ type: 'register', document, router: DOMAIN, signature: null });
    }),
  },
};

export const behindToml = (url: string): string => `
[limits]
requests_per_minute = 1000000
burst = 1000000
[upstream]
cooldown_ms = 1
[tunnel]
providers = "anyone"
connections_per_address_max = 1000
${SIGN_IN_TOML}[oauth]
issuer = "${url}"
[[providers]]
use = "openrouter"
api_key = "std::env::TEST_UPSTREAM_KEY"
api_base = "${url}/api/v1"
`;

export const behindUsual: Usual = ({ path }) =>
  path.includes('/models')
    ? {
        body: '{"data":[{"id":"openai/gpt-4o-mini","context_length":128000,"pricing":{"prompt":"0.00000015","completion":"0.0000006"}}]}',
      }
    : { status: 404, body: '{}' };

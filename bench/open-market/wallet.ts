import { randomBytes } from 'node:crypto';
import type { ServerHttp2Stream } from 'node:http2';
import { dialPeer, type TunnelPeer } from '../../test/support/tunnel-peer.ts';
import { evmWallet, signInHeaders, solanaWallet } from '../../test/support/wallets.ts';

const NETWORKS = ['203.0.113.', '198.51.100.', '2001:db8:1:', '2001:db8:2:'] as const;
const SERVICES = 300;
const CALLBACK = 'http://127.0.0.1:7878/callback';
const REPLY = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
});

/** A stranger with a wallet of its own, who never pays. Each of its acts is one that anybody may do. */
export interface MarketWallet {
  /** Does one act, by chance. Resolves with its name and status, or `failed`. */
  act(): Promise<string>;
  leave(): void;
}

/** The wallet number `index` at the gateway `url`. Its network is one of four. */
export function marketWallet(url: string, index: number): MarketWallet {
  const wallet = index % 2 === 0 ? solanaWallet() : evmWallet();
  const network = NETWORKS[index % NETWORKS.length]!;
  const host = Math.floor(index / NETWORKS.length) + 1;
  const from = network.includes(':') ? `${network}${host.toString(16)}::1` : `${network}${host}`;
  const name = `seller-${index}`;
  const signed = async () => ({ ...(await signInHeaders(wallet)), 'x-forwarded-for': from });
  let peer: TunnelPeer | null = null;
  let key: { readonly text: string; readonly hash: string } | null = null;
  let count = 0;

  const answer = (stream: ServerHttp2Stream) => {
    stream.resume();
    stream.once('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/json' });
      stream.end(REPLY);
    });
  };
  const send = async (
    path: string,
    body: object | null,
    headers: Readonly<Record<string, string>>,
    method = body === null ? 'GET' : 'POST',
  ) => {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': from, ...headers },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return { status: response.status, text };
  };
  /** For what needs a nonce of the gateway. */
  const signedOnce = async () => {
    const { text } = await send('/api/v1/auth/nonce', null, {});
    const { nonce } = JSON.parse(text) as { readonly nonce: string };
    return signInHeaders(wallet, { nonce });
  };
  const byKey = async () => (key === null ? signed() : { authorization: `Bearer ${key.text}` });
  const word = () => randomBytes(6).toString('hex');

  const acts = {
    async register() {
      peer ??= await dialPeer({ url, wallet, headers: await signed(), serve: answer });
      const connected = peer;
      connected.closed.then(() => (peer = peer === connected ? null : peer)).catch(() => {});
      count += 1;
      const models = Array.from({ length: SERVICES }, (_, at) => ({
        name: `${name}/m${at % 7 === 0 ? `${at}-${count}` : at}`,
        display_name: `Model ${at}`,
        provider_name: `Seller ${index}`,
        description: 'd'.repeat(800),
        context_length: 1000,
        pricing: { prompt: '0', completion: '0' },
        params: { model: 'm' },
      }));
      return (await connected.register({ version: 1, models })).type;
    },
    async leave() {
      peer?.kill();
      peer = null;
      return 'gone';
    },
    list: async () =>
      (await send(['/api/v1/models', '/api/v1/services', '/marketplace'][count++ % 3]!, null, {})).status,
    async signIn() {
      const { status, text } = await send('/api/v1/keys', { label: word() }, await signedOnce());
      if (status === 201) {
        const made = JSON.parse(text) as { readonly key: string; readonly data: { readonly hash: string } };
        key = { text: made.key, hash: made.data.hash };
      }
      return status;
    },
    async rotate() {
      if (key === null) return acts.signIn();
      const { status, text } = await send(`/api/v1/keys/${key.hash}/rotate`, { grace_seconds: 60 }, await signedOnce());
      if (status < 300) key = { ...key, text: (JSON.parse(text) as { readonly key: string }).key };
      return status;
    },
    tag: async () =>
      (
        await send(
          '/api/v1/chat/completions',
          {
            model: `${name}/m1`,
            messages: [{ role: 'user', content: 'hello' }],
            max_tokens: 5,
            metadata: Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`tag${at}`, word().repeat(5)])),
          },
          await byKey(),
        )
      ).status,
    ask: async () =>
      (
        await send(
          '/api/v1/quotes',
          {
            primitive: 'model',
            model: `${name}/m2`,
            messages: [{ role: 'user', content: 'hello' }],
            max_tokens: 5,
          },
          await byKey(),
        )
      ).status,
    search: async () =>
      (
        await send(
          '/mcp',
          {
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'find_tools', arguments: { query: `model ${word()}` } },
          },
          { ...(await byKey()), accept: 'application/json, text/event-stream' },
        )
      ).status,
    async program() {
      const { status, text } = await send('/oauth/register', { client_name: word(), redirect_uris: [CALLBACK] }, {});
      if (status !== 201) return status;
      const query = new URLSearchParams({
        client_id: (JSON.parse(text) as { readonly client_id: string }).client_id,
        redirect_uri: CALLBACK,
        response_type: 'code',
        code_challenge: randomBytes(32).toString('base64url'),
        code_challenge_method: 'S256',
        resource: `${url}/api/v1`,
      });
      return (await send(`/oauth/authorize?${query}`, null, {})).status;
    },
  };
  const names = Object.keys(acts) as (keyof typeof acts)[];
  return {
    async act() {
      const act = names[Math.floor(Math.random() * names.length)]!;
      try {
        return `${act} ${String(await acts[act]())}`;
      } catch (error) {
        return `${act} failed ${/^\d+/.exec((error as Error).message)?.[0] ?? (error as Error).name}`;
      }
    },
    leave: () => peer?.kill(),
  };
}

import type { FastifyInstance } from 'fastify';
import type { Ledger } from '#billing';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import type { KeyStore } from '#auth';
import { directForm, type Offer } from '#catalog';
import { localAccount } from '#accounts/names';
import { isObject } from '#wire';
import type { TestCallEnd } from '#pages/administration';

/** The account that test calls of the operator are billed to. */
const ACCOUNT = localAccount('operator');
const KEY_MS = 2 * 60_000;
const SHOWN_CHARS = 200;
const TOKENS = 64;

interface TestCallDeps {
  readonly server: Pick<FastifyInstance, 'inject'>;
  readonly keys: Pick<KeyStore, 'create' | 'delete'>;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly now: () => number;
}

/**
 * Makes one small call at an offer, through the same route and the same billing as every other call, with a key that is
 * deleted afterwards.
 */
export function createTestCall({ server, keys, ledger, now }: TestCallDeps) {
  return async (offer: Offer, most: MicroUsd): Promise<TestCallEnd> => {
    const key = await keys.create({
      account: ACCOUNT,
      label: 'test call',
      kind: 'live',
      expiresAt: now() + KEY_MS,
      limit: most,
      limitReset: null,
      allowedServices: null,
    });
    if (key === null) return { call: null, answer: null, error: TOO_MANY_KEYS, cost: 0n };
    try {
      const reply = await server.inject({
        method: 'POST',
        url: '/api/v1/chat/completions',
        headers: { authorization: `Bearer ${key.text}`, 'content-type': 'application/json' },
        payload: JSON.stringify({
          model: directForm(offer),
          messages: [{ role: 'user', content: 'Answer with the word: ready' }],
          max_tokens: TOKENS,
          max_cost: formatUsd(most),
        }),
      });
      const body: unknown = reply.json();
      const header = reply.headers['x-generation-id'];
      const id = textOf(isObject(body) ? body['id'] : null) ?? textOf(header);
      const lock = id === null ? null : await ledger.find(id);
      const cost = lock?.charged ?? 0n;
      if (reply.statusCode === 200) return { call: id, answer: answerOf(body), error: null, cost };
      return { call: lock === null ? null : id, answer: null, error: errorOf(body), cost };
    } finally {
      await keys.delete(ACCOUNT, key.record.hash);
    }
  };
}

const TOO_MANY_KEYS = {
  message: `The account ${ACCOUNT} has as many keys as an account can have. Delete some`,
  code: 'unprocessable',
};

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

function answerOf(body: unknown): string {
  const choices = isObject(body) ? body['choices'] : null;
  const choice: unknown = Array.isArray(choices) ? choices[0] : null;
  const message = isObject(choice) ? choice['message'] : null;
  return (textOf(isObject(message) ? message['content'] : null) ?? '').slice(0, SHOWN_CHARS);
}

function errorOf(body: unknown): { readonly message: string; readonly code: string } {
  const error = isObject(body) ? body['error'] : null;
  if (!isObject(error)) return { message: 'The answer has no error', code: 'unknown' };
  const code = textOf(error['code']) ?? textOf(error['type']) ?? 'unknown';
  const isPoor = code === 'insufficient_balance' || code === 'escrow_not_setup';
  // The error of a caller says nothing to the operator, who has no money of its own here yet.
  const message = isPoor
    ? `${ACCOUNT} has no money for test calls: create the account and credit it`
    : error['message'];
  return { message: textOf(message) ?? '', code };
}

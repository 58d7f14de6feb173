import { createHmac } from 'node:crypto';
import type { Row } from '#store';
import type { SealedTexts } from '#wire';
import type { Primitive } from '#config';
import { OutboundFailure, type GuardedFetch } from '#network';
import { outcomeOf, type DeliveryOutcome } from './delivery-outcome.ts';
import type { LostDelivery } from './webhook.ts';
import { openReceiver, sealOf } from './webhook-store.ts';

/** The result of one attempt. `retryAfter` is the receiver's header. */
export interface Attempt {
  readonly outcome: DeliveryOutcome;
  readonly reason: string;
  readonly retryAfter?: unknown;
}

/** A webhook that this gateway has claimed. */
export interface Claimed {
  readonly id: string;
  readonly claim: string;
  readonly account: string;
  readonly receiver: string;
  readonly sealOf: string;
  readonly lost: Omit<LostDelivery, 'reason'>;
}

export function toClaimed(id: string, claim: string, row: Row): Claimed {
  const [account, receiver, service, taskId] = (['account', 'receiver', 'service', 'task_id'] as const).map(
    (name) => row[name] as string,
  );
  const key = { primitive: row['primitive'] as Primitive, service: service!, taskId: taskId! };
  const owner = { account: account!, within: row['run'] === '' ? null : (row['run'] as string) };
  return {
    id,
    claim,
    account: account!,
    receiver: receiver!,
    sealOf: sealOf(key, owner, row['name'] as string),
    lost: { account: account!, service: service!, taskId: taskId!, receiver: receiver! },
  };
}

export interface SenderOptions {
  readonly fetch: GuardedFetch;
  readonly texts: SealedTexts;
  readonly timeoutMs: number;
  readonly closed: AbortSignal;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** The header of a signed delivery. */
export const SIGNATURE = 'x-tollgate-signature';

/** `t=<epoch seconds>,v1=<hex>`: HMAC-SHA256 of `<epoch seconds>.<body>`. */
export const signatureOf = (key: string, seconds: number, body: string): string =>
  `t=${seconds},v1=${createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex')}`;

/** Makes the function that sends one delivery. It resolves with `stopped` if `closed` aborted it. */
export function createSender({
  fetch,
  texts,
  timeoutMs,
  closed,
  now,
}: SenderOptions): (webhook: Claimed, row: Row) => Promise<Attempt | 'stopped'> {
  return async (webhook, row) => {
    const receiver = openReceiver(texts, webhook.sealOf, row['sealed'] as string);
    if (receiver === null) return { outcome: 'never', reason: 'its secrets were sealed by another identity' };
    const { headers: own, signingKey } = receiver;
    const body = row['body'] as string;
    const headers = {
      ...own,
      'content-type': row['content_type'] as string,
      ...(signingKey === undefined ? {} : { [SIGNATURE]: signatureOf(signingKey, Math.floor(now() / 1000), body) }),
    };
    try {
      const reply = await fetch(receiver.url, {
        method: 'POST',
        headers,
        body,
        timeoutMs,
        bodyBytesMax: 0,
        signal: closed,
      });
      return {
        outcome: outcomeOf(reply.status),
        reason: `the receiver answered ${reply.status}`,
        retryAfter: reply.headers['retry-after'],
      };
    } catch (error) {
      if (closed.aborted) return 'stopped';
      const refused = error instanceof OutboundFailure && error.refused;
      return {
        outcome: refused ? 'never' : 'again',
        reason: error instanceof OutboundFailure ? error.message : 'the call failed',
      };
    }
  };
}

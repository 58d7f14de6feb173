import type { FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { LimitsConfig } from '#config';
import { callerOf } from './request-context.ts';
import { tooLarge } from './connections.ts';

/** The header of a payment, and its name in version 1 of x402. Lower case. */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** The content-length of a request; null for a chunked body. Node accepts no other form of it. */
export function lengthOf({ headers }: FastifyRequest): number | null {
  const length = headers['content-length'];
  return length === undefined ? (headers['transfer-encoding'] === undefined ? 0 : null) : Number(length);
}

/** The largest body that a request may have. */
export function largestOf(
  request: FastifyRequest,
  { anonymousBodyBytesMax }: Pick<LimitsConfig, 'anonymousBodyBytesMax'>,
): number {
  const { bodyLimit } = request.routeOptions;
  const paid =
    callerOf(request)?.anonymous === undefined || PAYMENT_HEADERS.some((name) => request.headers[name] !== undefined);
  return paid ? bodyLimit : Math.min(bodyLimit, anonymousBodyBytesMax);
}

/** The error of a body above `bytesMax`, which largestOf gave. */
export function tooLargeFor(
  { routeOptions: { bodyLimit } }: FastifyRequest,
  bytesMax: number,
  limits: Parameters<typeof tooLarge>[1],
): GatewayError {
  if (bytesMax >= bodyLimit) return tooLarge(bodyLimit, limits);
  return new GatewayError(
    'payload_too_large',
    `A request without a credential and without a payment has at most ${bytesMax} bytes. Send a key, or send the payment together with the request, in PAYMENT-SIGNATURE: a smaller request to this address shows the terms. The operator sets this with limits.anonymous_body_bytes_max`,
  );
}

import * as sdk from '@a2a-js/sdk/errors';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES, GatewayError } from '#errors';
import {
  A2A_ERRORS,
  A2aError,
  errorNameOf,
  type A2aErrorName,
  A2A_GATEWAY_ERRORS,
  errorValue,
  toA2aError,
  type A2aErrorReply,
} from '../../../src/a2a/wire/errors.ts';
import { MCP_ERRORS } from '../../../src/mcp/wire/errors-mcp.ts';
import { client } from './support/sdk-translation.ts';

const VERSIONS = ['0.3', '1.0'] as const;
const parsed = ({ text }: A2aErrorReply): unknown => JSON.parse(text);

/** What the official client of a version throws at a reply. */
async function thrownAt(
  version: '0.3' | '1.0',
  binding: 'JSONRPC' | 'HTTP+JSON',
  { status, headers, text }: A2aErrorReply,
) {
  const reply = (id: number) =>
    new Response(text.replace('"id":1', `"id":${id}`), {
      status,
      headers: { 'content-type': 'application/json', ...headers },
    });
  const { transport } = await client(version, binding, reply);
  return transport.getTask({ tenant: '', id: 't' }).then(
    () => null,
    (error: unknown) =>
      error as Error & { envelopeCode?: number; reason?: string; statusCode?: number; data?: unknown },
  );
}

describe('errors on the wires of A2A', () => {
  it('the errors of A2A are written as the official SDK writes them', () => {
    const written = new Map<string, sdk.A2AError>();
    for (const [name, theirs] of Object.entries(sdk)) {
      const own = /^Rest(\w+)Error$/.exec(name)?.[1];
      if (own !== undefined && own in A2A_ERRORS)
        written.set(
          own,
          new (theirs as typeof sdk.RestTaskNotFoundError)({ message: 'No.', metadata: { taskId: 't' } }),
        );
    }
    expect(written.size).toBe(9);
    for (const [name, theirs] of written) {
      const ours = new A2aError(name as A2aErrorName, 'No.', { metadata: { taskId: 't' } });
      const rest = toA2aError(ours, { version: '1.0', binding: 'rest' });
      expect([rest.status, parsed(rest)]).toEqual([
        sdk.restStatusFor(theirs),
        sdk.toRestErrorBody(theirs, sdk.restStatusFor(theirs)),
      ]);
      expect(errorValue(ours, { version: '1.0', binding: 'jsonrpc' })).toEqual(sdk.toJsonRpcError(theirs));
    }
    expect(new Set(Object.values(A2A_ERRORS).map(({ code }): number => code))).toEqual(
      new Set(Object.values(sdk.A2A_ERROR_CODE)),
    );
    expect([errorNameOf(-32001), errorNameOf(-32010)]).toEqual(['TaskNotFound', null]);
  });

  it("the gateway's own codes are those of MCP", () => {
    for (const code of ERROR_CODES) {
      const expected = code === 'not_found' || code === 'expired' ? -32001 : MCP_ERRORS[code].code;
      expect([code, A2A_GATEWAY_ERRORS[code].code]).toEqual([code, expected]);
      expect([200, A2A_GATEWAY_ERRORS[code].status]).toContain(A2A_GATEWAY_ERRORS[code].rpcStatus);
    }
  });

  it('on JSON-RPC only credentials, money, rate and a body that is too large, too slow or coded have a status of their own', () => {
    const own = ERROR_CODES.map((code) => [code, A2A_GATEWAY_ERRORS[code].rpcStatus] as const).filter(
      ([, status]) => status !== 200,
    );
    expect(Object.fromEntries(own)).toEqual({
      unauthorized: 401,
      insufficient_balance: 402,
      payment_expired: 402,
      payment_verification_failed: 402,
      insufficient_payment: 402,
      escrow_not_setup: 402,
      permission_denied: 403,
      request_timeout: 408,
      payload_too_large: 413,
      unsupported_coding: 415,
      rate_limit_exceeded: 429,
    });
  });

  it.each(ERROR_CODES)('%s is read by the official clients of both versions', async (code) => {
    const error = new GatewayError(code, 'It is so.', { param: 'message', retryAfterS: 2.5 });
    const row = A2A_GATEWAY_ERRORS[code];
    for (const version of VERSIONS) {
      const reply = toA2aError(error, { version, binding: 'jsonrpc', idText: '1' });
      expect([reply.status, reply.headers]).toEqual([row.rpcStatus, { 'retry-after': '3' }]);
      expect(await thrownAt(version, 'JSONRPC', reply)).toMatchObject({ message: 'It is so.', envelopeCode: row.code });
    }
    const rest = toA2aError(error, { version: '1.0', binding: 'rest' });
    expect(rest.status).toBe(row.status);
    expect(await thrownAt('1.0', 'HTTP+JSON', rest)).toMatchObject({ message: 'It is so.', statusCode: row.status });
    const legacy = await thrownAt('0.3', 'HTTP+JSON', toA2aError(error, { version: '0.3', binding: 'rest' }));
    expect(legacy?.message).toContain('It is so.');
  });

  it.each(Object.keys(A2A_ERRORS) as A2aErrorName[])('%s is told apart by the official clients', async (name) => {
    const error = new A2aError(name, 'No.', { metadata: { taskId: 't' } });
    const { code, reason } = A2A_ERRORS[name];
    const modern = toA2aError(error, { version: '1.0', binding: 'jsonrpc', idText: '1' });
    expect(modern.status).toBe(200);
    expect(await thrownAt('1.0', 'JSONRPC', modern)).toMatchObject({
      message: 'No.',
      envelopeCode: code,
      data: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason,
          domain: 'a2a-protocol.org',
          metadata: { taskId: 't' },
        },
      ],
    });
    const legacy = toA2aError(error, { version: '0.3', binding: 'jsonrpc', idText: '1' });
    expect(await thrownAt('0.3', 'JSONRPC', legacy)).toMatchObject({
      envelopeCode: name === 'ExtensionSupportRequired' ? -32004 : code,
    });
    // a2a-go reads data as a list. An object that only has the id which the client sent would cost it the error.
    expect(parsed(legacy)).not.toHaveProperty('error.data');
    if (code <= -32100) return;
    expect(await thrownAt('1.0', 'HTTP+JSON', toA2aError(error, { version: '1.0', binding: 'rest' }))).toMatchObject({
      reason,
      metadata: { taskId: 't' },
    });
  });

  it('details of 1.0: what is wrong, where, and when to come again', () => {
    const error = new GatewayError('rate_limit_exceeded', 'Slow down.', {
      param: 'message',
      retryAfterS: 2,
      headers: { 'x-limit': '1' },
    });
    const details = [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'RATE_LIMIT_EXCEEDED',
        domain: 'tollgate',
        metadata: { type: 'rate_limit_exceeded', param: 'message' },
      },
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'message', description: 'Slow down.' }],
      },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' },
    ];
    const reply = toA2aError(error, { version: '1.0', binding: 'rest' });
    expect(parsed(reply)).toEqual({
      error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Slow down.', details },
    });
    expect(reply.headers).toEqual({ 'x-limit': '1', 'retry-after': '2' });
    expect(errorValue(error, { version: '1.0', binding: 'jsonrpc' })).toEqual({
      code: -32016,
      message: 'Slow down.',
      data: details,
    });
    expect(parsed(toA2aError(error, { version: '0.3', binding: 'rest' }))).toEqual({
      code: -32016,
      message: 'Slow down.',
      data: { type: 'rate_limit_exceeded', param: 'message', retry_after_s: 2 },
    });
  });

  it('what is no error of ours says nothing of itself', () => {
    for (const version of VERSIONS) {
      for (const thrown of [new Error('secret'), 'secret', null, { code: 'not_found', message: 'secret' }]) {
        const reply = toA2aError(thrown, { version, binding: 'jsonrpc', idText: '"a"' });
        expect(reply.text).not.toContain('secret');
        expect(parsed(reply)).toMatchObject({ jsonrpc: '2.0', id: 'a', error: { code: -32603 } });
      }
    }
  });
});

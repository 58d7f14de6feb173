import { describe, expect, it } from 'vitest';
import { createKey } from '../../../src/gateway/auth/api-key.ts';
import { readCredential, refuseRepeatedCredentials } from '../../../src/gateway/auth/credential.ts';

const one = createKey('live').text;
const two = createKey('development').text;

describe('the credential of a request', () => {
  it.each([
    ['Bearer', { authorization: `Bearer ${one}` }],
    ['Bearer in any case, with spaces', { authorization: `bEARER   ${one} ` }],
    ['x-api-key', { 'x-api-key': one }],
    ['both, the same', { authorization: `Bearer ${one}`, 'x-api-key': one }],
    ['a dummy Bearer beside x-api-key', { authorization: 'Bearer siwx', 'x-api-key': one }],
    ['a dummy x-api-key beside Bearer', { authorization: `Bearer ${one}`, 'x-api-key': 'none' }],
    ['another scheme beside x-api-key', { authorization: 'Basic YTpi', 'x-api-key': one }],
  ])('is read from %s', (_name, headers) => {
    expect(readCredential(headers)).toBe(one);
  });

  it('is asked for, with the words to send, when it is missing', () => {
    expect(() => readCredential({})).toThrow(
      expect.objectContaining({
        code: 'unauthorized',
        message: expect.stringContaining('Authorization: Bearer svc-sk-'),
      }),
    );
    expect(() => readCredential({ authorization: 'Basic YTpi' })).toThrow(/not of the form "Bearer <key>"/);
  });

  it('may not be two different keys', () => {
    expect(() => readCredential({ authorization: `Bearer ${one}`, 'x-api-key': two })).toThrow(
      /two different API keys/,
    );
  });

  it('may not be sent twice in one header, in any case of its name', () => {
    const host = ['Host', 'x'];
    expect(() =>
      refuseRepeatedCredentials([...host, 'Authorization', `Bearer ${one}`, 'x-api-key', one]),
    ).not.toThrow();
    expect(() =>
      refuseRepeatedCredentials([...host, 'Authorization', `Bearer ${one}`, 'AUTHORIZATION', `Bearer ${two}`]),
    ).toThrow(/sent more than once/);
    expect(() => refuseRepeatedCredentials(['X-API-Key', one, 'x-api-key', one])).toThrow(/sent more than once/);
    // A value is no name.
    expect(() => refuseRepeatedCredentials(['x', 'authorization', 'y', 'authorization'])).not.toThrow();
  });
});

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAccountId, toCaip10, isSubjectAccount, subjectAccount } from '../../../src/server/accounts/account-id.ts';
import { anyCharacter } from '../../support/any-character.ts';

const ISSUER = 'https://idp.example';
const CAIP_10 = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}$/;
const DIGEST = /^oauth:idp_example:[0-9a-f]{64}$/;

describe('the account of a subject', () => {
  it.each([
    ['alice', 'oauth:idp_example:alice'],
    ['248289761001', 'oauth:idp_example:248289761001'],
    ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6', 'oauth:idp_example:f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
    ['auth0|5f7c', 'oauth:idp_example:auth0%7C5f7c'],
    ['Alice@Example.com', 'oauth:idp_example:Alice%40Example.com'],
    ["a_b~c!'()*", 'oauth:idp_example:a%5Fb%7Ec%21%27%28%29%2A'],
    ['a:b/c d%e', 'oauth:idp_example:a%3Ab%2Fc%20d%25e'],
    ['ä\0', 'oauth:idp_example:%C3%A4%00'],
    ['..', 'oauth:idp_example:..'],
    ['__proto__', 'oauth:idp_example:%5F%5Fproto%5F%5F'],
    ['x'.repeat(63), `oauth:idp_example:${'x'.repeat(63)}`],
  ])('%j is %s', (subject, account) => {
    expect(subjectAccount(ISSUER, subject)).toBe(account);
  });

  it.each(['x'.repeat(64), '0'.repeat(64), 'ä'.repeat(11), 'y'.repeat(10_000)])('%j is a digest', (subject) => {
    expect(subjectAccount(ISSUER, subject)).toMatch(DIGEST);
    expect(subjectAccount(ISSUER, subject)).not.toContain(subject);
  });

  it.each([
    ['https://idp.example/', /^oauth:idp_example:a$/],
    ['https://a-b.c.example', /^oauth:a-b_c_example:a$/],
    ['https://idp.example/realms/main', /^oauth:idp_example_[0-9a-f]{12}:a$/],
    ['https://idp.example:8443', /^oauth:idp_example_[0-9a-f]{12}:a$/],
    ['https://idp.example?x', /^oauth:idp_example_[0-9a-f]{12}:a$/],
    ['https://a_b.example', /^oauth:a_b_example_[0-9a-f]{12}:a$/],
    ['http://[::1]:9', /^oauth:1_[0-9a-f]{12}:a$/],
    [`https://${'long.'.repeat(10)}example`, /^oauth:long_long_long_long_[0-9a-f]{12}:a$/],
  ])('of the issuer %s is %s', (issuer, account) => {
    expect(subjectAccount(issuer, 'a')).toMatch(account);
  });

  it('is one for each, is CAIP-10, and is an account that the operator can name', () => {
    const subject = fc.string({ unit: anyCharacter, minLength: 1 }).filter((text) => text.isWellFormed());
    const issuer = fc.constantFrom(ISSUER, `${ISSUER}/a`, `${ISSUER}/b`, 'https://other.example', 'http://localhost:1');
    fc.assert(
      fc.property(subject, subject, issuer, issuer, (one, other, of, from) => {
        const account = subjectAccount(of, one);
        expect(account).toMatch(CAIP_10);
        expect([isSubjectAccount(account), parseAccountId(account), toCaip10(account, [])]).toEqual([
          true,
          account,
          account,
        ]);
        if (one !== other || of !== from) expect(subjectAccount(from, other)).not.toBe(account);
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 300 },
    );
  });

  it.each([
    'oauth:idp_example:',
    'oauth::alice',
    'oauth:alice',
    'OAUTH:idp_example:alice',
    'oauth:idp.example:alice',
    'oauth:IDP_example:alice',
    'oauth:idp_example:al ice',
    'oauth:idp_example:a%7cb',
    'oauth:idp_example:%61lice',
    'oauth:idp_example:a_b',
    'oauth:idp_example:%',
    'oauth:idp_example:%FF',
    'oauth:idp_example:a:b',
    `oauth:idp_example:${'x'.repeat(64)}`,
    `oauth:idp_example:${'x'.repeat(65)}`,
    `oauth:${'x'.repeat(33)}:alice`,
    'escrow:oauth:idp_example:alice',
  ])('is not %j', (text) => {
    expect(parseAccountId(text)).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { createAdminGuard } from '../../../src/gateway/auth/administrators/admin-gate.ts';
import { createKey } from '../../../src/gateway/auth/api-key.ts';

const adminKey = createKey('admin').text;

describe('the admin guard', () => {
  it('lets the admin key pass', () => {
    expect(() => createAdminGuard(adminKey)({ authorization: `Bearer ${adminKey}` })).not.toThrow();
  });

  it.each([
    ['nothing', undefined],
    ['an empty token', 'Bearer '],
    ['another admin key', `Bearer ${createKey('admin').text}`],
    ['a beginning of the key', `Bearer ${adminKey.slice(0, -1)}`],
    ['more than the key', `Bearer ${adminKey}x`],
    ['the key without a scheme', adminKey],
    ['an ordinary key', `Bearer ${createKey('live').text}`],
  ])('refuses %s', (_name, authorization) => {
    expect(() => createAdminGuard(adminKey)({ authorization })).toThrow(
      expect.objectContaining({ code: 'unauthorized' }),
    );
  });

  it('lets nothing pass when there is no admin key', () => {
    for (const token of ['', 'null', 'undefined', adminKey])
      expect(() => createAdminGuard(null)({ authorization: `Bearer ${token}` })).toThrow();
  });

  it('does not read x-api-key', () => {
    expect(() => createAdminGuard(adminKey)({ 'x-api-key': adminKey })).toThrow();
  });
});

import { expect, test } from 'vitest';
import type { MemberRole } from '#accounts';
import { KEYS_PER_ACCOUNT_MAX } from '#auth/keys';
import { createKey, type KeysDeps } from '../../../src/console/pages/account/keys.ts';

// The store makes no key for an account that has too many, nor for who is no member any more, or a viewer by now.

const asked = (role: MemberRole | null, member: string | null, count = KEYS_PER_ACCOUNT_MAX) =>
  createKey(
    {
      keys: {
        create: async () => null,
        list: async (_account: string, { offset }: { offset: number }) => Array.from({ length: count - offset }),
      },
      members: { find: async () => (role === null ? null : { role }) },
      now: () => 0,
    } as unknown as KeysDeps,
    'tollgate:local:org',
    'live',
    {},
    { member, setter: 'account' },
  );

test.each([
  ['the account itself', null, null, 'unprocessable', /too many keys. Delete/],
  ['a member', 'admin', 'tollgate:local:ann', 'unprocessable', /too many keys. Delete/],
  ['who was removed', null, 'tollgate:local:ann', 'permission_denied', /^You are no longer a member/],
  ['who is a viewer by now', 'viewer', 'tollgate:local:ann', 'permission_denied', /your role is viewer$/],
] as const)('%s is told why there is no key', async (_who, role, member, code, message) => {
  await expect(asked(role, member)).rejects.toMatchObject({ code, message: expect.stringMatching(message) as string });
});

test('an account with room is told that what it made the key with has ended', async () => {
  await expect(asked(null, null, KEYS_PER_ACCOUNT_MAX - 1)).rejects.toMatchObject({
    code: 'unauthorized',
    message: expect.stringMatching(/session or key has just ended/) as string,
  });
});

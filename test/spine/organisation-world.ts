import { expect } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import type { Spine } from '../support/spine.ts';

export interface Reply {
  readonly status: number;
  readonly body: {
    readonly data?: never;
    readonly key?: string;
    readonly error?: { readonly message: string; readonly type: string };
  };
}

/** Makes organisations at a spine that may not have started yet. */
export function createOrganisations(spineOf: () => Spine) {
  const call = async (
    key: string,
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Reply> => {
    const response = await fetch(`${spineOf().origin}${path.startsWith('/admin') ? '' : '/api/v1'}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Reply['body'] };
  };
  let count = 0;
  /** An organisation with money, an owner and somebody of each other role, who act with keys of their own accounts. */
  async function organisation() {
    const spine = spineOf();

    count += 1;
    const people = {} as Record<'owner' | 'admin' | 'member' | 'viewer', { account: string; key: string }>;
    for (const role of ['owner', 'admin', 'member', 'viewer'] as const)
      people[role] = await spine.tenant(`${role}-${count}`, '0');
    const made = await call(people.owner.key, 'POST', '/organisations', { label: `Acme ${count}`, name: 'Olga' });
    expect(made.status).toBe(201);
    const { account } = made.body.data! as { account: string };
    const to = escrowOf(account);
    await spine.app.ledger.transfer({
      id: `fund ${account}`,
      from: treasuryOf('operator'),
      to,
      amount: 10_000_000n,
      memo: '',
    });
    const as = (role: keyof typeof people) => (method: string, path: string, body?: object) =>
      call(people[role].key, method, path, body, { 'x-tollgate-account': account });
    for (const role of ['admin', 'member', 'viewer'] as const)
      expect(await as('owner')('POST', '/members', { account: people[role].account, role, name: role })).toMatchObject({
        status: 201,
      });
    const path = (role: keyof typeof people) => `/members/${encodeURIComponent(people[role].account)}`;
    return { account, people, as, path };
  }
  return { call, organisation };
}

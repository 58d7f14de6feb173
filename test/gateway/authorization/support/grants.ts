import type { Spine } from '../../../support/spine.ts';

/** What the list of keys tells of a grant. */
interface Grant {
  readonly hash: string;
  readonly name: string;
  /** The program, as its owner sees it. */
  readonly client: string | null;
  /** USD. */
  readonly usage: number;
}

/** The grants of the account of a gateway, oldest first. */
export async function grantsOf(spine: Pick<Spine, 'get'>): Promise<readonly Grant[]> {
  const { data } = (await (await spine.get('/keys')).json()) as { readonly data: readonly Grant[] };
  return data.filter(({ client }) => client !== null);
}

/** Takes a grant away, as its owner. Rejects if the gateway does not. */
export async function endGrant({ url, key }: Pick<Spine, 'url' | 'key'>, { hash }: Grant): Promise<void> {
  const response = await fetch(`${url}/keys/${hash}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${key}` },
  });
  if (response.status !== 200) throw new Error(`the grant stays: ${response.status} ${await response.text()}`);
}

import { describe, expect, test } from 'vitest';
import { LedgerUnavailable } from '#billing';
import { createGroupCommit, type GroupCommit, type PendingOperation } from '../../src/billing/ledger/group-commit.ts';
import type { LedgerOperation } from '../../src/billing/ledger/ledger-operations.ts';

const release = (id: string): LedgerOperation => ({ kind: 'release', request: { id, detail: '{}' } });

/** A committer that is finished by hand. */
function harness(groupMax = 1_000, patienceMs = 60_000) {
  const groups: { readonly ids: readonly string[]; finish(): void }[] = [];
  let arrived: (() => void) | undefined;
  const group = async (members: readonly PendingOperation[]) => {
    await new Promise<void>((finish) => {
      groups.push({ ids: members.map(({ operation }) => operation.request.id), finish });
      arrived?.();
    });
    for (const { resolve } of members) resolve({ ok: true });
  };
  const commit: GroupCommit = createGroupCommit({ commit: group, patience: () => patienceMs, groupMax });
  const groupNumber = (number: number) =>
    new Promise<{ readonly ids: readonly string[]; finish(): void }>((resolve) => {
      arrived = () => groups.length >= number && resolve(groups[number - 1]!);
      arrived();
    });
  return { commit, groups, groupNumber };
}

describe('operations', () => {
  test('of one turn of the event loop are one group, in their order', async () => {
    const { commit, groupNumber } = harness();
    const results = Promise.all(['a', 'b', 'c'].map((id) => commit.submit(release(id))));
    const first = await groupNumber(1);
    expect(first.ids).toEqual(['a', 'b', 'c']);
    first.finish();
    expect(await results).toEqual([{ ok: true }, { ok: true }, { ok: true }]);
  });

  test('that arrive while a group is in flight are the next one', async () => {
    const { commit, groups, groupNumber } = harness();
    const a = commit.submit(release('a'));
    const first = await groupNumber(1);
    const rest = ['b', 'c'].map((id) => commit.submit(release(id)));
    expect(groups).toHaveLength(1);
    first.finish();
    await a;
    const second = await groupNumber(2);
    expect(second.ids).toEqual(['b', 'c']);
    second.finish();
    await Promise.all(rest);
  });

  test('that follow from the answers of a group join what waited for it', async () => {
    const { commit, groupNumber } = harness();
    const chained = commit.submit(release('a')).then(() => commit.submit(release('a-next')));
    const first = await groupNumber(1);
    const waiting = commit.submit(release('b'));
    first.finish();
    const second = await groupNumber(2);
    expect(second.ids).toEqual(['b', 'a-next']);
    second.finish();
    await Promise.all([chained, waiting]);
  });

  test('beyond the cap wait for the group after', async () => {
    const { commit, groupNumber } = harness(2);
    const all = ['a', 'b', 'c'].map((id) => commit.submit(release(id)));
    (await groupNumber(1)).finish();
    const second = await groupNumber(2);
    expect(second.ids).toEqual(['c']);
    second.finish();
    await Promise.all(all);
  });

  test('that waited too long are rejected when the committer says so, without effect', async () => {
    const { commit, groups, groupNumber } = harness(1_000, 0);
    const a = commit.submit(release('a'));
    const first = await groupNumber(1);
    const b = commit.submit(release('b'));
    commit.rejectOverdue();
    await expect(b).rejects.toThrow(LedgerUnavailable);
    first.finish();
    await a;
    await commit.close();
    expect(groups).toHaveLength(1);
  });

  test('are finished before closing ends, and refused after it', async () => {
    const { commit, groupNumber } = harness();
    const a = commit.submit(release('a'));
    const first = await groupNumber(1);
    const b = commit.submit(release('b'));
    let closed = false;
    const closing = commit.close().then(() => (closed = true));
    await expect(commit.submit(release('c'))).rejects.toThrow(LedgerUnavailable);
    first.finish();
    await a;
    const second = await groupNumber(2);
    expect(closed).toBe(false);
    second.finish();
    await Promise.all([b, closing]);
  });
});

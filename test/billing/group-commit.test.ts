import { describe, expect, test } from 'vitest';
import { LedgerUnavailable } from '#billing';
import { DatabaseError } from '#store';
import {
  createCommitter,
  createGroupCommit,
  type Engine,
  type GroupCommit,
  type PendingOperation,
} from '../../src/billing/ledger/group-commit.ts';
import type { LedgerOperation } from '../../src/billing/ledger/ledger-operations.ts';

const expire = (at: number): LedgerOperation => ({
  kind: 'expire',
  request: { id: `lock-${at}`, account: 'alice', at, spareKept: false },
});
const release = (id: string): LedgerOperation => ({ kind: 'release', request: { id, detail: '{}' } });

/** A committer that is finished by hand. */
function harness(groupMax = 1_000, patienceMs = 60_000, waitingMax = 10_000) {
  const groups: { readonly ids: readonly string[]; finish(): void }[] = [];
  let arrived: (() => void) | undefined;
  const group = async (members: readonly PendingOperation[]) => {
    await new Promise<void>((finish) => {
      groups.push({ ids: members.map(({ operation }) => operation.request.id), finish });
      arrived?.();
    });
    for (const { resolve } of members) resolve({ ok: true });
  };
  const commit: GroupCommit = createGroupCommit({ commit: group, patience: () => patienceMs, groupMax, waitingMax });
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

  test('beyond those that may wait are refused at once as busy, and ends of calls are taken', async () => {
    const { commit, groups, groupNumber } = harness(1_000, 60_000, 2);
    const first = commit.submit(release('a'));
    (await groupNumber(1)).finish();
    await first;
    const running = commit.submit(release('b'));
    const group = await groupNumber(2);
    const waiting = [commit.submit(expire(1)), commit.submit(expire(2))];
    await expect(commit.submit(expire(3))).rejects.toMatchObject({ name: 'LedgerUnavailable', cause: { busy: true } });
    const end = commit.submit(release('c'));
    expect(groups).toHaveLength(2);
    group.finish();
    (await groupNumber(3)).finish();
    expect(await Promise.all([running, ...waiting, end])).toHaveLength(4);
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
    commit.rejectOverdue(new DatabaseError('away', { code: 'connection', unavailable: true }));
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

test('on a full disk, calls that begin are refused at once, also behind ends that are tried again', async () => {
  const begun = Promise.withResolvers<void>();
  const refused = Promise.withResolvers<void>();
  let isFull = true;
  const engine: Pick<Engine, 'begin' | 'isConflict' | 'chain' | 'close'> = {
    chain: 'test',
    isConflict: () => false,
    close: async () => {},
    begin: () => async (operations) => {
      begun.resolve();
      await refused.promise;
      if (isFull) throw new DatabaseError('no room', { code: '53100', unavailable: true, full: true });
      return operations.map(() => ({ ok: true }));
    },
  };
  const committer = createCommitter(engine as Engine, undefined);
  const ended = committer.submit(release('a'));
  await begun.promise;
  const lock = { id: 'b', account: 'a', amount: 1n, prices: [], expiresAt: 0, detail: '{}' };
  const waiting = committer.submit({ kind: 'lock', request: lock });
  refused.resolve();
  await expect(waiting).rejects.toThrow('The disk of the database is full');
  isFull = false;
  expect(await ended).toEqual({ ok: true });
  await committer.close();
});

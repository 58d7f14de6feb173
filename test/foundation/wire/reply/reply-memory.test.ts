import { describe, expect, it } from 'vitest';
import { createReplyMemory } from '#call';

const KIB = 1024;
const memory = (waitMs = 60_000) =>
  createReplyMemory({ repliesBytesMax: 4_096 * KIB, replyBytesMax: 512 * KIB, waitMs });

describe('the memory of unfinished replies', () => {
  it('does not count small replies', () => {
    const all = memory();
    for (let i = 0; i < 1_000; i++) expect(all.open('a', false, 'p').keeps(64 * KIB)).toBeNull();
  });

  it('gives one account a quarter, and others what they need meanwhile', async () => {
    const all = memory();
    const first = all.open('greedy', false, 'p1');
    const second = all.open('greedy', false, 'p2');
    const third = all.open('greedy', false, 'p3');
    expect([first.keeps(512 * KIB), second.keeps(512 * KIB)]).toEqual([null, null]);
    const waits = third.keeps(512 * KIB);
    expect(waits).toBeInstanceOf(Promise);
    expect(all.open('other', false, 'p4').keeps(512 * KIB)).toBeNull();
    second.release();
    await waits;
  });

  it('gives one provider a quarter, whoever asks it', () => {
    const all = memory();
    for (const account of ['a', 'b']) expect(all.open(account, false, 'p').keeps(512 * KIB)).toBeNull();
    const third = all.open('c', false, 'p');
    expect(third.keeps(512 * KIB)).toBeInstanceOf(Promise);
    third.release();
  });

  it('leaves something to the next account, however many have taken a quarter', () => {
    const all = memory();
    for (const account of ['a', 'a', 'b', 'b', 'c', 'c', 'd'])
      expect(all.open(account, false, null).keeps(512 * KIB)).toBeNull();
    const another = all.open('d', false, null);
    expect(another.keeps(512 * KIB)).toBeInstanceOf(Promise);
    expect(all.open('e', false, null).keeps(512 * KIB)).toBeNull();
    another.release();
  });

  it('leaves something to who pays, however many accounts call for nothing', () => {
    const all = memory();
    for (let n = 0; n < 7; n++) expect(all.open(`wallet ${n}`, true, null).keeps(512 * KIB)).toBeNull();
    const another = all.open('wallet 8', true, null);
    expect(another.keeps(512 * KIB)).toBeInstanceOf(Promise);
    expect(all.open('wallet 8', false, null).keeps(512 * KIB)).toBeNull();
    another.release();
  });

  it('lets the oldest of those that wait for each other come to its end', () => {
    const all = memory();
    const replies = Array.from({ length: 7 }, (_, index) => all.open('a', false, `p${index}`));
    for (const reply of replies) expect(reply.keeps(65 * KIB)).toBeNull();
    expect(replies[6]!.keeps(300 * KIB)).toBeInstanceOf(Promise);
    expect(replies[0]!.keeps(512 * KIB)).toBeNull();
    replies[6]!.release();
  });

  it('gives up what waits for too long, as a reply that is too large now', async () => {
    const all = memory(1);
    for (const provider of ['p1', 'p2']) expect(all.open('a', false, provider).keeps(512 * KIB)).toBeNull();
    await expect(all.open('a', false, 'p3').keeps(512 * KIB)).rejects.toMatchObject({
      tooLarge: true,
      unheld: true,
      retryAfterS: 2,
    });
  });
});

import { expect, it } from 'vitest';
import { createTools } from '../../../src/program/demo/tools.ts';

const NOON = Date.UTC(2026, 10, 12, 12, 0, 5);
const tools = createTools({ now: () => NOON, roll: (sides) => sides - 1 });

const say = (name: string, args: Record<string, unknown>) =>
  tools.find(({ definition }) => definition.name === name)!.run(args);

it.each([
  ['2d6', '2d6: 5 + 5 = 10', [5, 5], 10],
  ['d20', 'd20: 19', [19], 19],
  ['3d8 + 2', '3d8 + 2: 7 + 7 + 7 + 2 = 23', [7, 7, 7], 23],
  ['1D4-1', '1D4-1: 3 - 1 = 2', [3], 2],
])('roll_dice %s', (dice, text, rolls, total) => {
  expect(say('roll_dice', { dice })).toEqual({ text, data: { dice, rolls, total } });
});

it('rolls one ordinary die where nothing else is asked', () => {
  expect(say('roll_dice', {}).text).toBe('1d6: 5');
});

it.each([
  ['Asia/Tokyo', 'It is 21:00:05 on Thursday, 2026-11-12, in Asia/Tokyo.'],
  ['America/New_York', 'It is 07:00:05 on Thursday, 2026-11-12, in America/New_York.'],
  ['Pacific/Kiritimati', 'It is 02:00:05 on Friday, 2026-11-13, in Pacific/Kiritimati.'],
])('tell_time %s', (zone, text) => {
  expect(say('tell_time', { zone }).text).toBe(text);
});

it('weigh_words counts as people count', () => {
  expect(say('weigh_words', { text: "Don't pay the ferryman 🇳🇱" })).toEqual({
    text: 'The text has 4 words, 24 characters and 8 tokens. Its heaviest word is "ferryman"; to read it aloud takes 2 seconds.',
    data: { words: 4, characters: 24, tokens: 8, heaviest: 'ferryman', seconds_aloud: 2 },
  });
  expect(say('weigh_words', { text: '' }).text).toBe('The text has 0 words, 0 characters and 0 tokens.');
});

it.each([
  ['roll_dice', { dice: '0d6' }, /1 to 100 dice/],
  ['roll_dice', { dice: '101d6' }, /1 to 100 dice/],
  ['roll_dice', { dice: 'd1' }, /2 to 1000 sides/],
  ['roll_dice', { dice: 'six' }, /such as "2d6\+1"/],
  ['roll_dice', { dice: 6 }, /dice must be a text/],
  ['tell_time', { zone: 'Mars/Olympus' }, /, not "Mars\/Olympus"/],
  ['weigh_words', {}, /text must be a text/],
  ['weigh_words', { text: 'x'.repeat(100_001) }, /at most 100000/],
])('%s refuses %j', (name, args, message) => {
  expect(() => say(name, args)).toThrow(message);
});

it('says data of the shape that it promises', () => {
  const args = { roll_dice: {}, tell_time: {}, weigh_words: { text: 'to be' } } as Record<
    string,
    Record<string, unknown>
  >;
  for (const { definition, run } of tools) {
    const { required } = definition['outputSchema'] as { readonly required: readonly string[] };
    expect(Object.keys(run(args[definition.name]!).data).sort()).toEqual([...required].sort());
  }
});

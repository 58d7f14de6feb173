import { commentOn } from './dice-odds.ts';
import { RunError, type Run } from './croupier-run.ts';
import { ArgumentError, createTools, type Surroundings } from './tools.ts';

/** A part of an answer, in the form of A2A 1.0. */
export type GamePart = { readonly text: string } | { readonly data: unknown };

/** A step of a task: a progress message, a piece of the artifact, or the final state (which may be a question). */
export type GameStep =
  | { readonly kind: 'working'; readonly words: string }
  | { readonly kind: 'piece'; readonly parts: readonly GamePart[]; readonly last: boolean }
  | {
      readonly kind: 'over';
      readonly state: 'completed' | 'rejected' | 'input-required';
      readonly words: string | null;
    };

type Game = (said: string, run: Run | null) => AsyncGenerator<GameStep, void, undefined>;

const TOOLBOX = 'demo/toolbox';
const SAGE = 'demo/sage';
/** The most characters of a message that are read. */
const HEARD_MAX = 4_000;
const DICE = /(?<![\w.])\d{0,3}d\d{1,4}(?:[+-]\d{1,6})?(?!\w)/i;

/**
 * The croupier's work: rolls the dice that a text names. With a run token the demo's toolbox rolls them, through the
 * gateway. Without one, or if that call fails, the croupier rolls them itself.
 */
export function createGame(around: Surroundings): Game {
  const rollDice = createTools(around).find(({ definition }) => definition.name === 'roll_dice')!.run;

  return async function* play(said, run) {
    const dice = DICE.exec(said.slice(0, HEARD_MAX))?.[0];
    if (dice === undefined) {
      yield {
        kind: 'over',
        state: 'input-required',
        words: 'Which dice? Say them as players do, such as 2d6 or d20+3.',
      };
      return;
    }
    yield { kind: 'working', words: run === null ? `I roll ${dice}.` : `${TOOLBOX} rolls ${dice}.` };
    let asides: readonly string[] = run === null ? ['I rolled by myself, as no run token came with the message.'] : [];
    let rolled: { readonly text: string; readonly data: unknown };
    try {
      rolled = run === null ? rollDice({ dice }) : await run.callTool(TOOLBOX, 'roll_dice', { dice });
    } catch (error) {
      if (error instanceof ArgumentError) return yield { kind: 'over', state: 'rejected', words: error.message };
      if (!(error instanceof RunError)) throw error;
      asides = [`I rolled by myself, as ${TOOLBOX} did not: ${error.message}.`];
      try {
        rolled = rollDice({ dice });
      } catch {
        return yield { kind: 'over', state: 'rejected', words: error.message };
      }
    }
    yield { kind: 'piece', parts: [{ text: rolled.text }, { data: rolled.data }], last: false };
    let comment = commentOn(rolled.text) ?? 'So be it.';
    if (run !== null && asides.length === 0) {
      yield { kind: 'working', words: `${SAGE} looks at it.` };
      try {
        comment = `${SAGE}: ${await run.askModel(SAGE, `What do you say to these dice? ${rolled.text}`)}`;
      } catch (error) {
        if (!(error instanceof RunError)) throw error;
        asides = [`The comment is my own, as ${SAGE} said nothing: ${error.message}.`];
      }
    }
    yield { kind: 'piece', parts: [comment, ...asides].map((text) => ({ text })), last: true };
    yield { kind: 'over', state: 'completed', words: null };
  };
}

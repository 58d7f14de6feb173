import { commentOn } from './answers.ts';
import { ArgumentError, createTools, type Surroundings } from './tools.ts';
import { isObject, type JsonObject } from './request.ts';

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

type Game = (text: string, run: AgentRun | null) => AsyncGenerator<GameStep, void, undefined>;

const TOOLS = 'demo/tools';
const CHAT = 'demo/chat';
/** The most characters of a message that are read. */
const HEARD_MAX = 4_000;
const DICE = /(?<![\w.])\d{0,3}d\d{1,4}(?:[+-]\d{1,6})?(?!\w)/i;

/**
 * The agent's work: rolls the dice that a text names. With a run token the demo's tool rolls them, through the
 * gateway. Without one, or if that call fails, the agent rolls them itself.
 */
export function createGame(around: Surroundings): Game {
  const rollDice = createTools(around).find(({ definition }) => definition.name === 'roll_dice')!.run;

  return async function* play(text, run) {
    const dice = DICE.exec(text.slice(0, HEARD_MAX))?.[0];
    if (dice === undefined) {
      yield {
        kind: 'over',
        state: 'input-required',
        words: 'Which dice? Say them as players do, such as 2d6 or d20+3.',
      };
      return;
    }
    yield { kind: 'working', words: run === null ? `I roll ${dice}.` : `${TOOLS} rolls ${dice}.` };
    let asides: readonly string[] = run === null ? ['I rolled by myself, as no run token came with the message.'] : [];
    let rolled: { readonly text: string; readonly data: unknown };
    try {
      rolled = run === null ? rollDice({ dice }) : await run.callTool(TOOLS, 'roll_dice', { dice });
    } catch (error) {
      if (error instanceof ArgumentError) return yield { kind: 'over', state: 'rejected', words: error.message };
      if (!(error instanceof RunError)) throw error;
      asides = [`I rolled by myself, as ${TOOLS} did not: ${error.message}.`];
      try {
        rolled = rollDice({ dice });
      } catch {
        return yield { kind: 'over', state: 'rejected', words: error.message };
      }
    }
    yield { kind: 'piece', parts: [{ text: rolled.text }, { data: rolled.data }], last: false };
    let comment = commentOn(rolled.text) ?? 'So be it.';
    if (run !== null && asides.length === 0) {
      yield { kind: 'working', words: `${CHAT} looks at it.` };
      try {
        comment = `${CHAT}: ${await run.askModel(CHAT, `What do you say to these dice? ${rolled.text}`)}`;
      } catch (error) {
        if (!(error instanceof RunError)) throw error;
        asides = [`The comment is my own, as ${CHAT} said nothing: ${error.message}.`];
      }
    }
    yield { kind: 'piece', parts: [comment, ...asides].map((text) => ({ text })), last: true };
    yield { kind: 'over', state: 'completed', words: null };
  };
}

/**
 * Calls through the gateway that sent the message. They are paid from the lock of the call that the agent works on.
 */
interface AgentRun {
  /**
   * Returns the text and the structured data of a tool's result. Rejects with RunError if the call is refused or fails.
   */
  callTool(service: string, name: string, args: JsonObject): Promise<{ readonly text: string; readonly data: unknown }>;
  /** Returns the model's text. Rejects with RunError if the call is refused or fails. */
  askModel(model: string, prompt: string): Promise<string>;
}

/** A call through the gateway failed. The agent's answer shows the message. */
class RunError extends Error {
  override readonly name = 'RunError';
}

const TOKEN = /^svc-run-[\w.-]{1,1000}$/;
/**
 * The address comes from the message, and anybody could have written it. So only addresses on this machine are called.
 */
const LOOPBACK = /^(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|localhost|\[::1\])$/;
const TIMEOUT_MS = 10_000;
const COMMENT_TOKENS_MAX = 64;

/**
 * Reads the run token in a message's `metadata["tollgate/run"]`. Returns null without a valid token, and if the URL
 * beside it is not on this machine.
 */
export function readRun(metadata: unknown): AgentRun | null {
  const run = isObject(metadata) ? metadata['tollgate/run'] : undefined;
  if (!isObject(run)) return null;
  const { token, url: base } = run;
  if (typeof token !== 'string' || !TOKEN.test(token) || typeof base !== 'string') return null;
  const url = URL.parse(base);
  return url !== null && url.protocol === 'http:' && LOOPBACK.test(url.hostname)
    ? createRun(base.replace(/\/+$/, ''), token)
    : null;
}

function createRun(base: string, token: string): AgentRun {
  const post = async (path: string, body: object): Promise<JsonObject> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const response = await fetch(`${base}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        redirect: 'error',
        signal,
      });
      const answer: unknown = await response.json();
      if (!isObject(answer)) throw new RunError(`status ${response.status}`);
      const { error } = answer;
      if (isObject(error)) throw new RunError(String(error['message']).slice(0, 300));
      return answer;
    } catch (error) {
      throw error instanceof RunError ? error : new RunError('the gateway cannot be reached', { cause: error });
    }
  };
  return {
    async callTool(service, name, args) {
      const { result } = await post(`/mcp/${service}`, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: args },
      });
      if (!isObject(result)) throw new RunError('no result came');
      const text = textOf(result['content']);
      const { structuredContent: data } = result;
      // If the account has too little money, the result is that of x402: its reason is in `structuredContent.error`.
      if (result['isError'] === true)
        throw new RunError((isObject(data) && typeof data['error'] === 'string' ? data['error'] : text).slice(0, 300));
      return { text, data };
    },
    async askModel(model, prompt) {
      const { choices } = await post('/chat/completions', {
        model,
        messages: [{ role: 'user', content: prompt }],
        max_tokens: COMMENT_TOKENS_MAX,
      });
      const choice: unknown = Array.isArray(choices) ? choices[0] : null;
      const message = isObject(choice) ? choice['message'] : null;
      if (!isObject(message) || typeof message['content'] !== 'string') throw new RunError('no answer came');
      return message['content'];
    },
  };
}

function textOf(content: unknown): string {
  const blocks = Array.isArray(content) ? content.filter(isObject) : [];
  return blocks.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
}

import { EventEmitter } from 'node:events';
import { type Asked, type PlayedModel, startPlayedModel, type Said } from './played-model.ts';

/** What a turn of an afternoon asks for. `expire`: `read`, with a key that expires before the second request. */
export type Verb = 'say' | 'read' | 'write' | 'errand' | 'cancel' | 'expire';

type Call = NonNullable<Said['call']>;

/** How the model of a client works: which of the client's tools do what it is asked for. */
export interface Hands {
  /** Calls of a turn, one after the other. Each knows the results of the turn so far. */
  readonly calls: (
    verb: 'read' | 'write' | 'errand',
    turn: number,
    asked: Asked,
  ) => readonly ((results: readonly string[]) => Call)[];
  /** What the client asks to shorten its conversation by a usual request. */
  readonly shortens: RegExp;
  /** The text of a shortened conversation, in the form that the client looks for. */
  readonly shortened: (text: string) => string;
}

export interface OfferOfAfternoon {
  readonly name: string;
  /** Micro-USD for a token of the prompt. One of the answer costs twice as much. */
  readonly price: number;
}

/** How a provider dies before it has said anything. */
export type Death = NonNullable<Said['dies']> | 'refused';

export interface AfternoonModel {
  /** Base URL with `/v1` of each offer, by its name. */
  readonly urls: Readonly<Record<string, string>>;
  readonly counts: Counts;
  /** What complete answers reported, each as `billOf` writes it. */
  readonly bills: readonly string[];
  /** `held`: with the request whose answer has begun and will not end. */
  readonly events: EventEmitter<{ held: [Asked] }>;
  stop(): Promise<void>;
}

export interface Counts {
  calls: number;
  deaths: number;
  compactions: number;
  errands: number;
  held: number;
  /** Bytes of the longest request. */
  longest: number;
}

export interface AfternoonOptions {
  readonly offers: readonly OfferOfAfternoon[];
  /** One after the other. */
  readonly deaths: readonly Death[];
  readonly hands: Hands;
  /** Runs before a turn of this kind is answered. */
  readonly onExpire: () => void;
  /** How many attempts have failed so far. */
  readonly failures: () => number;
}

const MARK = /\[(turn|errand) (\d+): (\w+)\]/g;
const RESULT =
  /"type":"(?:tool_result|function_call_output|custom_tool_call_output)"|"role":"tool"|"functionResponse":/;
const DIES_EVERY = 10;
/** A connection that was refused is seen in what the gateway says alone. */
const LOOK_MS = 10;
/** Without repetitions, which a client may take for a loop. */
const LONG = Array.from({ length: 150 }, (_, at) => `${at + 1}: ${(at + 1) ** 5} was thought about.\n`).join('');

export const promptOf = (turn: number, verb: Verb): string => `[turn ${turn}: ${verb}] Please do it.`;
export const errandOf = (turn: number): string => `[errand ${turn}: say] Please say it.`;
export const doneWith = (turn: number): string => `Turn ${turn} is done.`;
export const billOf = (offer: string, prompt: number, completion: number, cost: number): string =>
  `${offer}: ${prompt} + ${completion} = ${cost}`;

/** A model that does what the marks in prompts say. It remembers nothing: all that it knows is in the request. */
export async function startAfternoonModel(options: AfternoonOptions): Promise<AfternoonModel> {
  const { offers, deaths, hands } = options;
  const upstreams = await Promise.all(offers.map(() => startPlayedModel()));
  const counts: Counts = { calls: 0, deaths: 0, compactions: 0, errands: 0, held: 0, longest: 0 };
  const bills: string[] = [];
  const events = new EventEmitter<{ held: [Asked] }>();
  let expired = 0;
  let refusal: { readonly upstream: PlayedModel; readonly failures: number } | undefined;

  /** Takes connections again when one was refused. */
  const endRefusal = (): void => {
    if (refusal === undefined || options.failures() === refusal.failures) return;
    counts.calls += 1;
    counts.deaths += 1;
    refusal.upstream.accept();
    refusal = undefined;
  };
  const looking = setInterval(endRefusal, LOOK_MS);

  const say = ({ kind, turn, verb, since, asked }: Mark & { readonly asked: Asked }): Said => {
    if (kind === undefined) return { text: 'A title' };
    if (kind === 'errand') {
      counts.errands += 1;
      return { text: `Errand ${turn} is done.` };
    }
    if (verb === 'say') return { text: `${LONG}${doneWith(turn)}` };
    if (verb === 'cancel') return { text: 'It begins', held: true };
    if (verb === 'expire' && expired !== turn) {
      expired = turn;
      options.onExpire();
    }
    const results = since.filter((item) => RESULT.test(item));
    const call = hands.calls(verb === 'expire' ? 'read' : verb!, turn, asked)[results.length];
    return call === undefined ? { text: doneWith(turn) } : { text: `Step ${results.length + 1}.`, call: call(results) };
  };

  for (const [index, { name, price }] of offers.entries()) {
    const upstream = upstreams[index]!;
    upstream.answer = (asked) => {
      endRefusal();
      counts.calls += 1;
      counts.longest = Math.max(counts.longest, asked.reached.text.length);
      const mark = markOf(asked);
      const death = deaths[counts.deaths % deaths.length]!;
      const diesNext = counts.calls % DIES_EVERY === DIES_EVERY - 1;
      // Beside the calls of an errand others could be refused too.
      if (diesNext && death === 'refused' && mark.kind === 'turn' && mark.verb !== 'errand') {
        refusal = { upstream, failures: options.failures() };
        upstream.refuse();
      }
      if (counts.calls % DIES_EVERY === 0) {
        counts.deaths += 1;
        return { text: 'It dies', dies: death === 'refused' ? 500 : death };
      }
      let said: Said;
      if (asked.compacts || hands.shortens.test(mark.since.at(-1) ?? '')) {
        counts.compactions += 1;
        const text = `All went well so far. What was asked last: [turn ${mark.turn}: say]`;
        said = { text: asked.compacts ? text : hands.shortened(text) };
      } else said = say({ ...mark, asked });
      if (said.held === true) {
        counts.held += 1;
        events.emit('held', asked);
        return said;
      }
      // As a tokenizer that is generous would count, so that contexts are full soon.
      const prompt = Math.floor(asked.reached.text.length / 2);
      const completion = Math.ceil(JSON.stringify([said.text, said.call?.input]).length / 4);
      bills.push(billOf(name, prompt, completion, price * (prompt + 2 * completion)));
      return { ...said, used: { prompt, completion } };
    };
  }
  return {
    urls: Object.fromEntries(offers.map(({ name }, index) => [name, upstreams[index]!.url])),
    counts,
    bills,
    events,
    async stop() {
      clearInterval(looking);
      await Promise.all(upstreams.map((upstream) => upstream.stop()));
    },
  };
}

interface Mark {
  /** undefined: there is none. */
  readonly kind: string | undefined;
  readonly turn: number;
  readonly verb: Verb | undefined;
  /** What was said behind it, or everything. */
  readonly since: readonly string[];
}

/** The last mark of what a user said. */
function markOf({ turns }: Asked): Mark {
  const marks = turns.map((turn) => (turn.includes('"role":"user"') ? [...turn.matchAll(MARK)].at(-1) : undefined));
  const at = marks.findLastIndex((mark) => mark !== undefined);
  const [, kind, turn, verb] = marks[at] ?? [];
  return { kind, turn: Number(turn), verb: verb as Verb | undefined, since: turns.slice(at + 1) };
}

import { GatewayError } from '#errors';
import type { Frame, CancelSignal, MicroUsd } from '#billing/amounts';
import type { Config } from '#config';
import type { EventBatch, TargetContext, TargetAdapter } from '#bridge';
import { type CallRequest, newCallId, type Pipeline, type Run, type Runs, wantsReceipt } from '#call';
import { toGatewayError } from '#http';
import { type ChatResult, resultOf } from '../chat/reply/chat-end.ts';
import { endsEarly, type FinishReason } from '../chat/reply/finish-reason.ts';
import { ChunkObjects } from '../stream/chunk-output.ts';
import type { SentRequest } from '../chat/request/altered-headers.ts';
import type { ReplyAbout } from '../chat/reply/chat-reply.ts';
import type { ChatBody, ChatMessage } from '../chat/chat-schema.ts';
import { maxCostOf, toCall, type ChatContext } from '../call/chat-to-call.ts';
import { callTool, type CallToolOptions, type ToolSaid } from './call-tool.ts';
import { ADDED_MAX, askedOf, modelTurn, TURN_GAP, type ToolCall, type TurnEnd } from './model-turn.ts';
import {
  activityFrame,
  runSettled,
  type RunEnd,
  type ToolActivity,
  createRunCounter,
  type RunCounter,
} from './run-reply.ts';
import type { ServerTool, ServerTools } from './server-tools.ts';

interface RunFramesOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly config: Pick<Config, 'limits' | 'upstream'>;
  readonly runs: Runs;
  readonly mcp: TargetAdapter;
  readonly tools: ServerTools;
  /** Rounds of tools, after which the model has to answer. */
  readonly rounds: number;
  readonly budget: MicroUsd;
  readonly about: ReplyAbout;
  /** Members of the request that name its calls. */
  readonly names: Pick<CallRequest, 'metadata' | 'endUser'>;
  /** Called before each turn of the model. */
  readonly onTurn: (sent: SentRequest) => void;
  readonly onError: (error: unknown) => void;
}

/** Most tools that run at the same time, and most tool calls of one turn. */
const CONCURRENT_MAX = 8;
const CALLS_MAX = 64;

interface ToolLoopState {
  readonly options: RunFramesOptions;
  readonly capped: boolean;
  readonly context: ChatContext;
  readonly run: Run;
  readonly gone: CancelSignal;
  /** The time at which the run must end, as `performance.now()` counts. */
  readonly until: number;
  readonly counter: RunCounter;
  readonly added: ChatMessage[];
  addedLength: number;
  readonly texts: string[];
  provider: string;
  providerName: string;
  /** Why the operator has ended the run; null while it goes on. */
  ended: GatewayError | null;
}

/**
 * Lets a model use tools that the gateway calls. The run ends when the model answers, when it asks the client for
 * something, or when a limit is reached. Each turn and each tool call is a separate billed call, paid from the run's
 * lock. The last frame has their total cost. An error is thrown only if nothing was charged before. After a charge,
 * the reply ends with what it has.
 */
export async function* runFrames(
  options: RunFramesOptions,
  body: ChatBody,
  context: ChatContext,
  gone: CancelSignal,
): AsyncGenerator<Frame<ChatResult, EventBatch>, void, undefined> {
  const { about, budget, config, names } = options;
  const { caller, requestId } = context;
  const until = performance.now() + config.upstream.callTimeoutMs;
  const run = await options.runs.open({
    id: about.id,
    caller,
    requestId,
    primitive: 'model',
    service: about.model,
    budget,
    timeoutMs: config.upstream.callTimeoutMs,
    stream: about.stream,
    names,
    payment: context.payment ?? null,
    onEnded(reason) {
      state.ended = reason;
    },
  });
  const state: ToolLoopState = {
    capped: maxCostOf(body) !== null,
    options,
    context,
    run,
    gone,
    until,
    counter: createRunCounter(),
    added: [],
    addedLength: 0,
    texts: [],
    provider: '',
    providerName: '',
    ended: null,
  };
  let end: RunEnd | null = null;
  try {
    end = yield* runTurns(state, body);
  } finally {
    const isWhole = end !== null && end.note === null;
    await run.close(isWhole ? 'complete' : gone.aborted ? 'cancelled' : end === null ? 'failed' : 'stopped');
  }
  const { counter, added, texts, provider, providerName } = state;
  if (end !== null) yield runSettled({ about, text: texts.join(''), counter, provider, providerName, added }, end);
}

/** Returns null if a turn has no end. */
async function* runTurns(
  state: ToolLoopState,
  body: ChatBody,
): AsyncGenerator<Frame<ChatResult, EventBatch>, RunEnd | null, undefined> {
  const { options, gone, counter, added } = state;
  const { toolsByName } = options.tools;
  for (let round = 0; ; round++) {
    let turn: TurnEnd | null;
    try {
      turn = yield* nextTurn(state, body, round);
    } catch (error) {
      if (counter.charged === 0n) throw error;
      return brokenOff(state, error);
    }
    if (turn === null) return null;
    const { calls, message } = turn;
    const ended = (finishReason: FinishReason | null, note: GatewayError | null = null): RunEnd => ({
      finishReason,
      calls: [],
      note,
      message,
    });
    if (turn.cut !== null) return ended('length', turn.cut);
    if (calls.length === 0 || endsEarly(turn.finishReason)) return ended(turn.finishReason);
    const own = calls.filter(({ name }) => isOwn(options.tools, name));
    // The assistant message for the client has only the calls of the client's own functions. Every call in a message
    // must be answered, and the client cannot answer the others.
    if (own.length > 0) return { ...ended('tool_calls'), calls: own };
    if (gone.aborted) return ended('length', leftByClient());
    if (round >= options.rounds)
      return ended(
        'length',
        new GatewayError(
          'unprocessable',
          `The model asked for tools again after ${options.rounds} rounds, the limit of max_tool_rounds`,
        ),
      );
    if (remainingMs(state) <= 0) return ended('length', outOfTime());

    const known = (call: ToolCall): ServerTool => toolsByName.get(call.name) ?? { service: '', tool: call.name };
    const activity = (call: ToolCall, toolOutput: ToolSaid | null): ToolActivity => ({
      id: call.id,
      ...known(call),
      state: toolOutput === null ? 'running' : toolOutput.failed ? 'failed' : 'done',
      generation: toolOutput?.callId ?? null,
    });
    const { about } = options;
    if (about.stream)
      yield activityFrame(
        about,
        state.providerName,
        calls.map((call) => activity(call, null)),
      );
    const toolOutputs = await callAll(state, calls);
    if (about.stream)
      yield activityFrame(
        about,
        state.providerName,
        calls.map((call, index) => activity(call, toolOutputs[index]!)),
      );
    const content = turn.text === '' ? null : turn.text;
    added.push({ role: 'assistant', content, ...turn.echoFields, tool_calls: calls.map(askedOf) });
    calls.forEach(({ id }, index) => added.push({ role: 'tool', tool_call_id: id, content: toolOutputs[index]!.text }));
    state.addedLength += toolOutputs.reduce((sum, { text }) => sum + text.length, turn.length);
    if (gone.aborted) return ended('length', leftByClient());
    if (state.addedLength > ADDED_MAX) return ended('length', tooLong());
  }
}

async function* nextTurn(
  state: ToolLoopState,
  body: ChatBody,
  round: number,
): AsyncGenerator<Frame<ChatResult, EventBatch>, TurnEnd | null, undefined> {
  const { options, context, run, gone, counter, texts } = state;
  if (state.ended !== null) throw state.ended;
  const timeLeft = remainingMs(state);
  if (timeLeft <= 0) throw outOfTime();
  const { request, adapter } = toCall(turnBody(state, body, round), { ...context, output: () => new ChunkObjects() });
  const call = await options.pipeline.prepare(
    {
      ...request,
      // A quote is for one call, but a run has several.
      quote: null,
      capped: state.capped,
      parent: run.id,
      stickyKey: request.stickyKey ?? `${context.caller.account} ${run.id}`,
      timeoutMs: timeLeft,
    },
    newCallId(),
  );
  adapter.callId = call.id;
  options.onTurn(adapter);
  const turn = yield* modelTurn(call, options.pipeline.run(call, gone), {
    id: run.id,
    goesOn: texts.length > 0,
    first: round === 0,
  });
  if (turn === null) return null;
  counter.settled(call, turn.settled);
  const result = resultOf(turn.settled);
  counter.used(result, turn.settled.settlement.charged);
  if (turn.text !== '') texts.push(texts.length > 0 ? TURN_GAP + turn.text : turn.text);
  state.provider = turn.settled.provider;
  state.providerName = String(result.body['provider']);
  return turn;
}

/** The request of one round. The last round is without the gateway's tools, so that the model answers. */
function turnBody({ options, added }: ToolLoopState, body: ChatBody, round: number): ChatBody {
  const { tools: _, tool_choice: choice, parallel_tool_calls: parallel, ...rest } = body;
  const tools = round >= options.rounds ? options.tools.own : options.tools.all;
  const turn: ChatBody = { ...rest, model: body.model, messages: [...body.messages, ...added], max_cost: null };
  if (tools.length === 0) return turn;
  turn.tools = [...tools];
  if (parallel !== undefined) turn['parallel_tool_calls'] = parallel;
  // A forced choice applies to the first round only. Otherwise the model would call tools in every round.
  if (choice !== undefined && choice !== null) turn['tool_choice'] = round === 0 || choice === 'none' ? choice : 'auto';
  return turn;
}

function callAll(state: ToolLoopState, calls: readonly ToolCall[]): Promise<readonly ToolSaid[]> {
  const { options, context, run, gone, counter } = state;
  const { caller, requestId, headers } = context;
  const traceparent = headers['traceparent'];
  const ask: TargetContext = {
    caller,
    requestId,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(options.about.stream, context),
  };
  const shared: Omit<CallToolOptions, 'timeoutMs'> = {
    pipeline: options.pipeline,
    mcp: options.mcp,
    limits: options.config.limits,
    ask,
    parent: run.id,
    capped: state.capped,
    counter,
    gone,
    onError: options.onError,
  };
  const refused = (text: string): ToolSaid => ({ text: `Error: ${text}`, failed: true, callId: null });
  return allAtMost(CONCURRENT_MAX, [...calls.entries()], async ([index, call]) => {
    const tool = options.tools.toolsByName.get(call.name);
    if (!tool) return refused('there is no tool with this name');
    if (index >= CALLS_MAX) return refused(`at most ${CALLS_MAX} tools can be called at once`);
    const timeoutMs = remainingMs(state);
    if (timeoutMs <= 0 || gone.aborted) return refused('the time of the run is over');
    return callTool(tool, call, { ...shared, timeoutMs });
  });
}

/**
 * Whether the client has a function of this name. If nobody has it, the model made it up, and callAll tells the
 * model so.
 */
const isOwn = ({ own }: ServerTools, name: string) => own.some((tool) => tool.function?.name === name);

const remainingMs = ({ until }: ToolLoopState) => until - performance.now();

const tooLong = () =>
  new GatewayError('unprocessable', `The tool calls and their results have more than ${ADDED_MAX} characters together`);
/** A client that only waits for the end, such as that of a response in the background, still gets it. */
const leftByClient = () =>
  new GatewayError('reply_cut', 'The run was cut: its client left. What was made until then is charged');
const outOfTime = () => new GatewayError('provider_unavailable', 'The run took longer than a call may take');

/**
 * The end of a run that failed after something was charged. The client gets what the run has so far. If money or time
 * ran out, the reply counts as cut.
 */
function brokenOff(state: ToolLoopState, error: unknown): RunEnd {
  const hasLeft = state.gone.aborted && !(error instanceof GatewayError);
  if (!hasLeft && !(error instanceof GatewayError)) state.options.onError(error);
  const note = hasLeft ? leftByClient() : toGatewayError(error);
  const ranOut = hasLeft || note.code === 'insufficient_balance' || remainingMs(state) <= 0;
  return { finishReason: ranOut ? 'length' : 'error', calls: [], note, message: {} };
}

/**
 * Runs `work` for all items, at most `most` of them at a time. The results have the order of the items. `work` must
 * not reject.
 */
async function allAtMost<T, R>(
  most: number,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
  return results;
}

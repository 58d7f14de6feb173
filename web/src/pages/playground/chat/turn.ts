import type { CallBody } from '../calls/run-call.ts';
import type { Answer } from '../calls/answer.ts';
import type { Service } from '../catalogue.ts';
import type { QuoteBody } from '../most-cost.tsx';
import type { Settings } from './settings.ts';

/** A message and its answer. */
export interface Turn {
  readonly id: string;
  readonly text: string;
  /** Pictures as data URLs. */
  readonly images: readonly string[];
  /** The request as it was sent, without `stream`. */
  readonly body: CallBody;
  readonly answer: Answer;
}

export interface Said {
  readonly text: string;
  readonly images: readonly string[];
}

const contentOf = ({ text, images }: Said) =>
  images.length === 0
    ? text
    : [
        ...(text === '' ? [] : [{ type: 'text', text }]),
        ...images.map((url) => ({ type: 'image_url', image_url: { url } })),
      ];

const numberOf = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text));

/** Makes the request for a message, with the earlier turns. */
export function bodyOf(service: Service, settings: Settings, turns: readonly Turn[], said: Said): CallBody {
  const max_cost = numberOf(settings.maxCost);
  const cap = max_cost === undefined ? {} : { max_cost };
  if (service.kind === 'agent') {
    const task = turns.at(-1)?.answer.task ?? null;
    return {
      model: `a2a/${service.name}`,
      // The agent remembers the earlier messages, so they aren't sent.
      messages: [{ role: 'user', content: contentOf(said) }],
      ...(task === null ? {} : { tollgate: goOn(task) }),
      ...cap,
    };
  }
  const temperature = numberOf(settings.temperature);
  const top_p = numberOf(settings.topP);
  const max_tokens = numberOf(settings.maxTokens);
  return {
    model: service.name,
    messages: [
      ...(settings.system.trim() === '' ? [] : [{ role: 'system', content: settings.system }]),
      ...turns.flatMap((turn) =>
        turn.answer.length === 0
          ? []
          : [
              { role: 'user', content: contentOf(turn) },
              { role: 'assistant', content: turn.answer.pieces.join('') },
            ],
      ),
      { role: 'user', content: contentOf(said) },
    ],
    ...(temperature === undefined ? {} : { temperature }),
    ...(top_p === undefined ? {} : { top_p }),
    ...(max_tokens === undefined ? {} : { max_tokens }),
    ...(settings.tools.length === 0 ? {} : { tools: settings.tools.map((name) => ({ type: 'mcp', service: name })) }),
    ...cap,
  };
}

/** The body of a quote for a message. */
export function quoteBodyOf(service: Service, settings: Settings, turns: readonly Turn[], said: Said): QuoteBody {
  if (service.kind === 'agent') return { primitive: 'agent', agent: service.name };
  const { max_cost: _cap, ...body } = bodyOf(service, settings, turns, said);
  return { primitive: 'model', ...body };
}

/**
 * If the task asks for input, the message continues this task. If the task has ended, the message starts a new task in
 * its context.
 */
const goOn = ({ id, context, state }: NonNullable<Answer['task']>) => ({
  ...(state === 'input-required' && id !== null ? { task_id: id } : {}),
  ...(context === null ? {} : { context_id: context }),
});

/** The gateway's estimate: one token per four bytes. */
const BYTES_PER_TOKEN = 4;

/** Estimated USD of an answer so far, computed like the gateway. null if the price isn't by tokens. */
export function costSoFar(service: Service, { body, answer }: Turn): number | null {
  if (service.model === undefined) return null;
  const { prompt, completion } = service.model;
  const read = JSON.stringify(body['messages'], (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith('data:') ? '' : value,
  ).length;
  const written = answer.length + answer.thinking.length;
  return (read * prompt + written * completion) / BYTES_PER_TOKEN / 1_000_000;
}

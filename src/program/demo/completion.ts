import { type ChatRequest, splitTokens } from './request.ts';
import { composeAnswer } from './answers.ts';
import { chooseTools } from './tool-choice.ts';

/** One choice of the answer. Each piece is one token. */
interface CompletionChoice {
  readonly pieces: readonly CompletionPiece[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
}

/**
 * One token: of text, or of the call of the tool with this index. Only the first piece of a call has `name` and `id`.
 */
type CompletionPiece =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'call';
      readonly index: number;
      readonly name: string | null;
      readonly id: string | null;
      readonly text: string;
    };

/** Computes all choices of an answer. A choice ends at `max_tokens` or before the first `stop` sequence. */
export function complete(request: ChatRequest, id: string): readonly CompletionChoice[] {
  const calls = chooseTools(request);
  return Array.from({ length: request.n }, (_, choice) => {
    if (calls.length > 0) {
      const pieces = calls.flatMap((call, index): CompletionPiece[] => [
        { kind: 'call', index, name: call.name, id: `call_${id.slice(-12)}_${choice}_${index}`, text: '' },
        ...splitTokens(call.arguments).map((text): CompletionPiece => ({
          kind: 'call',
          index,
          name: null,
          id: null,
          text,
        })),
      ]);
      return bounded(pieces, request.maxTokens, 'tool_calls');
    }
    const text = untilStop(composeAnswer(request, choice), request.stop);
    return bounded(
      splitTokens(text).map((piece): CompletionPiece => ({ kind: 'text', text: piece })),
      request.maxTokens,
      'stop',
    );
  });
}

function bounded(
  pieces: readonly CompletionPiece[],
  maxTokens: number | null,
  finishReason: 'stop' | 'tool_calls',
): CompletionChoice {
  return maxTokens !== null && pieces.length > maxTokens
    ? { pieces: pieces.slice(0, maxTokens), finishReason: 'length' }
    : { pieces, finishReason };
}

function untilStop(text: string, stop: readonly string[]): string {
  const positions = stop.map((sequence) => text.indexOf(sequence)).filter((position) => position !== -1);
  return positions.length === 0 ? text : text.slice(0, Math.min(...positions));
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

export function usageOf(request: ChatRequest, choices: readonly CompletionChoice[]): Usage {
  const completion = choices.reduce((sum, choice) => sum + choice.pieces.length, 0);
  return {
    prompt_tokens: request.promptTokens,
    completion_tokens: completion,
    total_tokens: request.promptTokens + completion,
  };
}

export function messageOf(choice: CompletionChoice): object {
  const calls = choice.pieces.filter((piece) => piece.kind === 'call');
  if (calls.length === 0) return { role: 'assistant', content: choice.pieces.map((piece) => piece.text).join('') };
  const toolCalls = calls
    .filter((piece) => piece.name !== null)
    .map(({ index, id, name }) => {
      const text = calls.filter((piece) => piece.index === index).map((piece) => piece.text);
      return { id, type: 'function', function: { name, arguments: text.join('') } };
    });
  return { role: 'assistant', content: null, tool_calls: toolCalls };
}

export function deltaOf(piece: CompletionPiece): object {
  if (piece.kind === 'text') return { content: piece.text };
  if (piece.name === null) return { tool_calls: [{ index: piece.index, function: { arguments: piece.text } }] };
  return {
    tool_calls: [{ index: piece.index, id: piece.id, type: 'function', function: { name: piece.name, arguments: '' } }],
  };
}

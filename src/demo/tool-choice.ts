import { ownWords } from './own-words.ts';
import type { ChatRequest, Tool } from './request.ts';
import { exampleFor } from './schema-example.ts';

export interface ToolCall {
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

/**
 * Returns the tool calls for this request: the forced tool, or the tools whose names the user mentions. Returns no
 * calls if the last message is a tool's result.
 */
export function chooseTools(request: ChatRequest): readonly ToolCall[] {
  if (request.tools.length === 0 || request.toolChoice === 'none' || request.messages.at(-1)?.role === 'tool')
    return [];
  const said = ownWords(request.messages.findLast((message) => message.role === 'user')?.text ?? '').slice(0, 4000);
  const { toolChoice } = request;
  const named =
    typeof toolChoice === 'object'
      ? request.tools.filter((tool) => tool.name === toolChoice.name)
      : request.tools.filter((tool) => isMeant(tool, said));
  const chosen = named.length === 0 && toolChoice === 'required' ? request.tools.slice(0, 1) : named;
  return chosen
    .slice(0, request.parallelToolCalls ? undefined : 1)
    .map((tool) => ({ name: tool.name, arguments: JSON.stringify(exampleFor(tool.parameters, said) ?? {}) }));
}

// Words in tool names that don't tell which tool the user means.
const COMMON_WORDS = new Set([
  'get',
  'set',
  'run',
  'the',
  'and',
  'for',
  'tool',
  'call',
  'make',
  'fetch',
  'list',
  'find',
  'lookup',
  'current',
  'function',
]);

/** Tells whether the user means this tool. "what is the weather in Rome?" means `get_current_weather`. */
function isMeant(tool: Tool, said: string): boolean {
  const text = said.toLowerCase();
  const words = tool.name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
  return (
    text.includes(tool.name.toLowerCase()) ||
    words.some((word) => word.length >= 3 && !COMMON_WORDS.has(word) && text.includes(word))
  );
}

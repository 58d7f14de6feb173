import { isObject } from '#wire';

type Json = Readonly<Record<string, unknown>>;

/**
 * Items that report what ran in a container at OpenAI. Clients send them back with the conversation. They name the
 * container, so it would be used again. All consumers share the account, so anybody who learns the name could use
 * the container. That is why the model gets a text about the run instead.
 */
const RUNS: ReadonlySet<unknown> = new Set(['code_interpreter_call', 'shell_call', 'shell_call_output']);

/** Whether an item is a run in a container. A shell that the client runs has no container. */
export const isContainerRun = (item: unknown): item is Json =>
  isObject(item) && RUNS.has(item['type']) && (typeof item['container_id'] === 'string' || isInContainer(item));

const isInContainer = ({ environment }: Json): boolean =>
  isObject(environment) && environment['type'] === 'container_reference';

/** Replaces such items of a conversation by text of the model. Returns the same array without such items. */
export function withoutContainers<Item>(input: readonly Item[]): readonly (Item | Json)[] {
  if (!input.some(isContainerRun)) return input;
  const runs = new Set(input.flatMap((item) => (isContainerRun(item) ? [item['call_id']] : [])));
  const belongs = (item: unknown): item is Json =>
    isContainerRun(item) || (isObject(item) && item['type'] === 'shell_call_output' && runs.has(item['call_id']));
  return input.map((item) => (belongs(item) ? { role: 'assistant', content: wordsOfRun(item) } : item));
}

/** Describes what ran, and its output. Images are left out. */
function wordsOfRun({ type, code, action, output, outputs }: Json): string {
  const said = Array.isArray(outputs) ? outputs.filter((one) => isObject(one) && one['type'] === 'logs') : outputs;
  return `[${String(type)}: ${JSON.stringify({ code, action, output, outputs: said })}]`;
}

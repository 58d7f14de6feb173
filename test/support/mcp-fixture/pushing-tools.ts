import type { CallToolResult, McpServer, ServerContext } from '@modelcontextprotocol/server';
import { oneString, says, wordsOf } from './content.ts';
import { askModel, askWith, CHOICES_FORM, DEFAULTS_FORM, PERSON_FORM } from './questions.ts';

type Pushing = (input: Readonly<Record<string, string>>, context: ServerContext) => Promise<CallToolResult>;

/**
 * Tools that send a request to the client during the call, like tools written before 2026-07-28. In that revision they
 * fail.
 */
export const PUSHING: Readonly<Record<string, Pushing>> = {
  test_elicitation_sep1034_defaults: (_input, context) =>
    askForm('Please review the form and its defaults', DEFAULTS_FORM, context, 'Elicitation completed'),
  test_elicitation_sep1330_enums: (_input, context) =>
    askForm('Please choose', CHOICES_FORM, context, 'Elicitation completed'),
  test_elicitation: ({ message = '' }, context) => askForm(message, PERSON_FORM, context, 'User response'),
  async test_sampling({ prompt = '' }, { mcpReq }) {
    const { params } = askModel(prompt, 100);
    const answer = await mcpReq.requestSampling(params as Parameters<typeof mcpReq.requestSampling>[0]);
    return says(`LLM response: ${wordsOf(answer.content)}`);
  },
};

export function addPushingTools(server: McpServer): void {
  for (const [name, run] of Object.entries(PUSHING)) {
    const argument = { test_sampling: 'prompt', test_elicitation: 'message' }[name];
    const schema = argument === undefined ? {} : { inputSchema: oneString(argument) };
    if (argument === undefined)
      server.registerTool(name, { description: 'Asks its client' }, (context) => run({}, context));
    else server.registerTool(name, { description: 'Asks its client', ...schema }, run);
  }
}

async function askForm(
  message: string,
  form: object,
  { mcpReq }: ServerContext,
  words: string,
): Promise<CallToolResult> {
  const { params } = askWith(message, form);
  const { action, content = {} } = await mcpReq.elicitInput(params as Parameters<typeof mcpReq.elicitInput>[0]);
  return says(`${words}: action=${action}, content=${JSON.stringify(content)}`);
}

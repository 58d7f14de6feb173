import {
  acceptedContent,
  fromJsonSchema,
  inputRequired,
  ResourceTemplate,
  type GetPromptResult,
  type McpServer,
} from '@modelcontextprotocol/server';
import { PNG } from './content.ts';
import { askFor } from './questions.ts';

export function addResources(server: McpServer): void {
  const fixed = (name: string, mimeType: string, body: { readonly text: string } | { readonly blob: string }) => {
    const uri = `test://${name}`;
    server.registerResource(name, uri, { description: `The fixed resource ${name}`, mimeType }, () => ({
      contents: [{ uri, mimeType, ...body }],
    }));
  };
  fixed('static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  fixed('static-binary', 'image/png', { blob: PNG });
  fixed('watched-resource', 'text/plain', { text: 'Watched content' });

  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  server.registerResource(
    'template',
    template,
    { description: 'Data by id', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  );
}

type Content = GetPromptResult['messages'][number]['content'];

const prompt = (...contents: Content[]): GetPromptResult => ({
  messages: contents.map((content) => ({ role: 'user', content })),
});
const words = (text: string): Content => ({ type: 'text', text });

export function addPrompts(server: McpServer): void {
  server.registerPrompt('test_simple_prompt', { description: 'A prompt without arguments' }, () =>
    prompt(words('This is a simple prompt for testing.')),
  );

  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'A prompt with two arguments', argsSchema: strings('arg1', 'arg2') },
    (input) => prompt(words(`Prompt with arguments: arg1='${input['arg1']}', arg2='${input['arg2']}'`)),
  );

  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A prompt with a resource', argsSchema: strings('resourceUri') },
    (input) =>
      prompt(
        {
          type: 'resource',
          resource: {
            uri: input['resourceUri'] ?? '',
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        },
        words('Please process the embedded resource above.'),
      ),
  );

  server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image' }, () =>
    prompt({ type: 'image', data: PNG, mimeType: 'image/png' }, words('Please analyze the image above.')),
  );

  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'A prompt that needs an answer of the user' },
    ({ mcpReq }) => {
      const context = acceptedContent<{ context?: string }>(mcpReq.inputResponses, 'user_context')?.context;
      return context === undefined
        ? inputRequired({ inputRequests: { user_context: askFor('What context should the prompt use?', 'context') } })
        : prompt(words(`Use this context: ${context}`));
    },
  );
}

/** Answers completions directly, because the SDK's own handler needs a schema per argument. */
export function addCompletions(server: McpServer): void {
  server.server.setRequestHandler('completion/complete', ({ params }) => {
    const values = ['paris', 'park', 'party'].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
}

function strings(...names: string[]) {
  return fromJsonSchema<Record<string, string>>({
    type: 'object',
    properties: Object.fromEntries(
      names.map((name) => [name, { type: 'string', description: `The argument ${name}` }]),
    ),
    required: names,
  });
}

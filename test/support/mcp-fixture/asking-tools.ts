import {
  acceptedContent,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  type CallToolResult,
  type InputRequest,
  type InputRequiredResult,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { oneString, says, wordsOf } from './content.ts';
import { addPushingTools, PUSHING } from './pushing-tools.ts';
import { askFor, askModel, askRoots, askWith, CHOICES_FORM, DEFAULTS_FORM, PERSON_FORM } from './questions.ts';

interface State {
  readonly step: number;
  readonly name?: string;
}

/**
 * Protects the state that a tool needs in the next round from changes. The key is a constant because the fixture is one
 * process.
 */
export const states = createRequestStateCodec<State>({ key: 'the-fixture-seals-its-states-with-this' });

type Reply = CallToolResult | InputRequiredResult;
type Asking = (context: ServerContext, server: McpServer) => Reply | Promise<Reply>;

/**
 * Tools without arguments that ask their client something, by name. They are written only once. On 2026-07-28 they
 * answer `input_required`. In a legacy session the SDK sends the same questions as requests and then calls the tools
 * again.
 */
const ASKING: Readonly<Record<string, Asking>> = {
  test_elicitation_sep1034_defaults: form(askWith('Please review the form and its defaults', DEFAULTS_FORM)),
  test_elicitation_sep1330_enums: form(askWith('Please choose', CHOICES_FORM)),
  test_streaming_elicitation: form(askFor('What is your name?', 'name')),
  test_missing_capability: needs(askModel('Say hello', 10)),
  test_input_required_result_sampling: needs(askModel('What is the capital of France?', 100), 'capital_question'),
  test_input_required_result_list_roots: needs(askRoots(), 'client_roots'),

  test_input_required_result_elicitation({ mcpReq }) {
    const name = acceptedContent<{ name?: unknown }>(mcpReq.inputResponses, 'user_name')?.name;
    return typeof name === 'string'
      ? says(`Hello, ${name}!`)
      : inputRequired({ inputRequests: { user_name: askFor('What is your name?', 'name') } });
  },

  async test_input_required_result_request_state({ mcpReq }) {
    const done =
      mcpReq.requestState<State>()?.step === 1 && acceptedContent(mcpReq.inputResponses, 'confirm') !== undefined;
    return done
      ? says('state-ok')
      : inputRequired({ inputRequests: { confirm: confirm() }, requestState: await states.mint({ step: 1 }) });
  },

  async test_input_required_result_tampered_state({ mcpReq }) {
    const done =
      mcpReq.requestState<State>()?.step === 1 && acceptedContent(mcpReq.inputResponses, 'confirm') !== undefined;
    return done
      ? says('The state came back as it was')
      : inputRequired({ inputRequests: { confirm: confirm() }, requestState: await states.mint({ step: 1 }) });
  },

  async test_input_required_result_multiple_inputs({ mcpReq }) {
    const questions = {
      user_name: askFor('What is your name?', 'name'),
      greeting: askModel('Generate a greeting', 50),
      client_roots: askRoots(),
    };
    const all = Object.keys(questions).every((key) => inputResponse(mcpReq.inputResponses, key).kind !== 'missing');
    return all
      ? says('All three answers came')
      : inputRequired({ inputRequests: questions, requestState: await states.mint({ step: 1 }) });
  },

  async test_input_required_result_multi_round({ mcpReq }) {
    const state = mcpReq.requestState<State>();
    const name = acceptedContent<{ name?: string }>(mcpReq.inputResponses, 'step1')?.name;
    const color = acceptedContent<{ color?: string }>(mcpReq.inputResponses, 'step2')?.color;
    if (state?.step === 2 && color !== undefined) return says(`${state.name} likes ${color}`);
    if (state?.step === 1 && name !== undefined)
      return inputRequired({
        inputRequests: { step2: askFor('Step 2: What is your favorite color?', 'color') },
        requestState: await states.mint({ step: 2, name }),
      });
    return inputRequired({
      inputRequests: { step1: askFor('Step 1: What is your name?', 'name') },
      requestState: await states.mint({ step: 1 }),
    });
  },

  test_input_required_result_capabilities({ mcpReq }, server) {
    const client = server.server.getClientCapabilities() ?? {};
    const questions: Record<string, InputRequest> = {};
    if (client.elicitation) questions['user_name'] = askFor('What is your name?', 'name');
    if (client.sampling) questions['greeting'] = askModel('Generate a greeting', 50);
    if (client.roots) questions['client_roots'] = askRoots();
    const open = Object.keys(questions).filter((key) => inputResponse(mcpReq.inputResponses, key).kind === 'missing');
    return open.length === 0
      ? says(`${Object.keys(questions).length} answers came`)
      : inputRequired({ inputRequests: questions });
  },
};

/** With `pushing`, tools that also exist in `pushing-tools.ts` are left out. */
export function addAskingTools(server: McpServer, pushing: boolean): void {
  for (const [name, run] of Object.entries(ASKING))
    if (!(pushing && Object.hasOwn(PUSHING, name)))
      server.registerTool(name, { description: 'Needs an answer of the client' }, (context) => run(context, server));
  if (pushing) return addPushingTools(server);

  server.registerTool(
    'test_sampling',
    { description: 'Passes a prompt to the model of the client', inputSchema: oneString('prompt') },
    (input, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'answer');
      if (answer.kind !== 'sampling')
        return inputRequired({ inputRequests: { answer: askModel(input['prompt'] ?? '', 100) } });
      return says(`LLM response: ${wordsOf(answer.result.content)}`);
    },
  );

  server.registerTool(
    'test_elicitation',
    { description: 'Shows a message to the user and asks who it is', inputSchema: oneString('message') },
    (input, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'person');
      if (answer.kind !== 'elicit')
        return inputRequired({ inputRequests: { person: askWith(input['message'] ?? '', PERSON_FORM) } });
      return says(`User response: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
    },
  );
}

const confirm = () => askFor('Please confirm', 'ok', 'boolean');

function form(question: InputRequest): Asking {
  return ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'form');
    if (answer.kind !== 'elicit') return inputRequired({ inputRequests: { form: question } });
    return says(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
  };
}

function needs(question: InputRequest, key = 'answer'): Asking {
  return ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, key);
    return answer.kind === 'missing'
      ? inputRequired({ inputRequests: { [key]: question } })
      : says(`The client answered: ${JSON.stringify(answer)}`);
  };
}

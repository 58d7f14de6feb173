/** A tool that Anthropic defines and the client runs. `prefix` is the beginning of its type; its version follows. */
interface ClientTool {
  readonly prefix: string;
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

const text = { type: 'string' };
const point = {
  type: 'array',
  items: { type: 'integer' },
  minItems: 2,
  maxItems: 2,
  description: 'x and y in pixels.',
};

const COMPUTER_ACTIONS = (
  'key type mouse_move left_click left_click_drag right_click middle_click double_click triple_click screenshot ' +
  'cursor_position left_mouse_down left_mouse_up scroll hold_key wait zoom'
).split(' ');

/** Models of Anthropic know the schemas of these tools. Other models have to be given the schemas. */
export const CLIENT_TOOLS: readonly ClientTool[] = [
  {
    prefix: 'bash_',
    name: 'bash',
    description: 'Run a command in a bash shell that stays open between calls.',
    parameters: {
      type: 'object',
      properties: {
        command: { ...text, description: 'The command. Required unless restart is set.' },
        restart: { type: 'boolean', description: 'Start a new shell.' },
      },
    },
  },
  {
    prefix: 'text_editor_',
    name: 'str_replace_based_edit_tool',
    description: 'View, create and edit text files.',
    parameters: {
      type: 'object',
      required: ['command', 'path'],
      properties: {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert'] },
        path: { ...text, description: 'Path of the file or folder.' },
        view_range: { ...point, description: 'With view: the first and the last line. -1 is the end.' },
        file_text: { ...text, description: 'With create: the content.' },
        old_str: { ...text, description: 'With str_replace: the text to replace, exactly as it stands there once.' },
        new_str: { ...text, description: 'With str_replace: the new text.' },
        insert_line: { type: 'integer', description: 'With insert: the line to insert after. 0 is the beginning.' },
        insert_text: { ...text, description: 'With insert: the text.' },
      },
    },
  },
  {
    prefix: 'computer_',
    name: 'computer',
    description: 'Use a screen, a mouse and a keyboard.',
    parameters: {
      type: 'object',
      required: ['action'],
      properties: {
        action: {
          type: 'string',
          enum: COMPUTER_ACTIONS,
        },
        coordinate: point,
        start_coordinate: point,
        text: { ...text, description: 'Text to type, or keys to press.' },
        scroll_direction: { type: 'string', enum: ['up', 'down', 'left', 'right'] },
        scroll_amount: { type: 'integer' },
        duration: { type: 'number', description: 'Seconds.' },
        region: { type: 'array', items: { type: 'integer' }, minItems: 4, maxItems: 4, description: 'With zoom.' },
      },
    },
  },
  {
    prefix: 'memory_',
    name: 'memory',
    description: 'Read and write files below /memories, which stay between conversations.',
    parameters: {
      type: 'object',
      required: ['command'],
      properties: {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
        path: text,
        view_range: { ...point, description: 'With view: the first and the last line.' },
        file_text: text,
        old_str: text,
        new_str: text,
        insert_line: { type: 'integer' },
        insert_text: text,
        old_path: text,
        new_path: text,
      },
    },
  },
];

import { inputRequired, type InputRequest } from '@modelcontextprotocol/server';

type Form = Exclude<Parameters<typeof inputRequired.elicit>[0]['requestedSchema'], { '~standard': unknown }>;

export const askWith = (message: string, form: object): InputRequest =>
  inputRequired.elicit({ message, requestedSchema: form as Form });

/** A form with one required field. */
export const askFor = (message: string, field: string, type: 'string' | 'boolean' = 'string'): InputRequest =>
  askWith(message, { type: 'object', properties: { [field]: { type } }, required: [field] });

export const askModel = (prompt: string, maxTokens: number): InputRequest =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens });

export const askRoots = (): InputRequest => inputRequired.listRoots();

/** A form with one field of each primitive type, each with a default. */
export const DEFAULTS_FORM = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'User name', default: 'John Doe' },
    age: { type: 'integer', description: 'User age', default: 30 },
    score: { type: 'number', description: 'User score', default: 95.5 },
    status: { type: 'string', description: 'User status', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', description: 'Is the user verified', default: true },
  },
  required: [],
};

const titled = (...titles: string[]) => titles.map((title, index) => ({ const: `value${index + 1}`, title }));

/** All forms of a choice in a schema, including the deprecated one. */
export const CHOICES_FORM = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
  },
  required: [],
};

export const PERSON_FORM = {
  type: 'object',
  properties: {
    username: { type: 'string', description: 'The name of the user' },
    email: { type: 'string', description: 'The email address of the user' },
  },
  required: ['username', 'email'],
};

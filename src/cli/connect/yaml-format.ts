import { isMap, isSeq, parseDocument, type Document } from 'yaml';
import type { Format, Setting } from './settings.ts';

/** YAML. Comments and the order of the file stay. The indentation may become two spaces. */
export const YAML_FORMAT: Format = {
  language: 'yaml',
  parse: (text) => (read(text).toJS() as unknown) ?? {},
  change(text, settings) {
    const document = read(text);
    for (const { at, value } of settings) {
      const path = pathOf(document, at);
      if (value === undefined) document.deleteIn(path);
      else document.setIn(path, document.createNode(value));
    }
    return document.toString({ lineWidth: 0 });
  },
};

function read(text: string): Document {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error) throw new Error(error.message.split('\n')[0]);
  return document;
}

/** Creates missing lists and entries on the path. Returns the path with list positions instead of names. */
function pathOf(document: Document, at: Setting['at']): readonly (string | number)[] {
  const path: (string | number)[] = [];
  for (const step of at) {
    if (typeof step === 'string') {
      path.push(step);
      continue;
    }
    if (!document.hasIn(path)) document.setIn(path, document.createNode([]));
    const list = document.getIn(path);
    if (!isSeq(list)) throw new Error(`${path.join('.')} is not a list`);
    const found = list.items.findIndex((entry) => isMap(entry) && entry.get('name') === step.name);
    if (found < 0) list.add(document.createNode({ name: step.name }));
    path.push(found < 0 ? list.items.length - 1 : found);
  }
  return path;
}

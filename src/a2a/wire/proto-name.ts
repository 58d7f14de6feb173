/** The name that a field has in `a2a.proto`, by its name in JSON: `taskId` → `task_id`. */
export const protoName = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

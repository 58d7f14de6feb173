/** The name of a field in `a2a.proto`, from its name in JSON: `taskId` → `task_id`. */
export const protoName = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

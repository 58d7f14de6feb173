// Imported before a program (NODE_OPTIONS): writes the addresses of all modules that its main thread loaded to the
// file that LOADS names.
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const loaded = [];
  registerHooks({
    load(url, context, next) {
      loaded.push(url);
      return next(url, context);
    },
  });
  process.on('exit', () => writeFileSync(process.env.LOADS, loaded.join('\n')));
}

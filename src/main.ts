import { runCli } from '#cli';

// A reader that has seen enough (`| head`) ends the program as it would any other.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runCli(process.argv);

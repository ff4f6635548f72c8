// Locks for what several processes make and use in one place: what npm installs, what compilers make. The lock is the kernel's, on the folder
// itself: it ends with the process that holds it, however that ends, and leaves no file behind.
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";

const EXCLUSIVE = "-x";
const SHARED = "-s";

/** Takes the lock through a program that has the same open folder: the lock stays when the program has ended. */
function lock(folder, open, how) {
  const stdio = ["ignore", "inherit", "inherit", open];
  if (spawnSync("flock", ["-n", how, "3"], { stdio }).status === 0) return;
  console.error(`Waiting for another process that works in ${folder}`);
  execFileSync("flock", [how, "3"], { stdio });
}

function withFolder(folder, work) {
  const open = openSync(folder, "r");
  try {
    return work(open);
  } finally {
    closeSync(open);
  }
}

/** Runs `work` while no other process works in the folder or uses it. */
export function alone(folder, work) {
  return withFolder(folder, (open) => {
    lock(folder, open, EXCLUSIVE);
    return work();
  });
}

/** Runs `use` beside others who use the folder, and while nobody changes it. Before that, `make` runs alone, unless `isMade()`. */
export function useMade(folder, isMade, make, use) {
  return withFolder(folder, (open) => {
    for (;;) {
      lock(folder, open, SHARED);
      if (isMade()) return use();
      lock(folder, open, EXCLUSIVE); // lets go of the other lock first, so that two who want this one do not wait for each other
      if (!isMade()) make();
    }
  });
}

#pragma once
// What the wrong arrow points at.

"""TigerBeetle's own steps, one action per step that its debug logs show: finer than the model's actions, for replay."""

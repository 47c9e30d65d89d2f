"""Trains a small network on a directory of images with Lightning.

    python lightning_fit.py photos

Lightning calls the loader's set_epoch, and saves its state with a checkpoint."""
import os
import sys

import lightning
import torch

import millrace as mr


class Classifier(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 5, stride=4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * 15 * 15, classes),
        )

    def training_step(self, batch, index):
        images, labels, names = batch
        return torch.nn.functional.cross_entropy(self.network(images), labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def main(directory):
    dataset = mr.Dataset.image_directory(directory)
    dataset = dataset.decode_image(64, crop="random_resized", flip=True, mean=124, std=58, layout="NCHW")
    loader = mr.torch.DataLoader(dataset, batch_size=8, shuffle=True, seed=1)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(Classifier(len(os.listdir(directory))), loader)
    print(f"{trainer.global_step} steps")


if __name__ == "__main__":
    main(*sys.argv[1:])
